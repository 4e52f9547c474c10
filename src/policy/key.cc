#include "policy/key.h"

#include <array>

namespace belljar::policy {
namespace {

constexpr auto kLevels = std::to_array<std::string_view>({"none", "process", "kernel", "container"});
constexpr auto kBackgrounds = std::to_array<std::string_view>({"end", "keep"});
constexpr auto kSystems = std::to_array<std::string_view>({"usr", "none"});
constexpr auto kModes = std::to_array<std::string_view>({"none", "allow", "full", "host"});

// Bounds keep typing errors out ("memory = 512" is half a kilobyte) and arithmetic on the values free of overflow.
constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kYear = 365ULL * 24 * 3600 * 1'000'000'000;
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMebibyte = 1ULL << 20;
constexpr std::uint64_t kExbibyte = 1ULL << 60;
constexpr std::uint64_t kManyThings = 1ULL << 31;

constexpr auto kKeys = std::to_array<Key>({
    {.name = "profile",
     .kind = Kind::kProfile,
     .initial = "default",
     .doc = "Named profile to start from; all other keys change it",
     .flag = "--profile",
     .argument = "NAME",
     .example = "tool",
     .text = [](Policy& p) -> std::string& { return p.profile; }},
    {.name = "level",
     .kind = Kind::kChoice,
     .initial = "kernel",
     .doc = "How strong the wall is",
     .flag = "--level",
     .argument = "LEVEL",
     .example = "kernel",
     .choices = kLevels,
     .get = [](const Policy& p) { return std::optional<std::uint64_t>(static_cast<std::uint64_t>(p.level)); },
     .set = [](Policy& p, std::uint64_t v) { p.level = static_cast<Level>(v); }},
    {.name = "min_level",
     .kind = Kind::kChoice,
     .initial = "",
     .doc = "Refuse to run below this level; the same as level when it is not set",
     .flag = "--min-level",
     .argument = "LEVEL",
     .example = "process",
     .choices = kLevels,
     .get = [](const Policy& p) -> std::optional<std::uint64_t> {
       if (!p.min_level) return std::nullopt;
       return static_cast<std::uint64_t>(*p.min_level);
     },
     .set = [](Policy& p, std::uint64_t v) { p.min_level = static_cast<Level>(v); }},
    {.name = "background",
     .kind = Kind::kChoice,
     .initial = "end",
     .doc =
         "In a live sandbox: what a command left running ends with it (end) or goes on until the sandbox closes (keep)",
     .flag = "",  // Only the library has live sandboxes.
     .argument = "end|keep",
     .example = "keep",
     .choices = kBackgrounds,
     .get = [](const Policy& p) { return std::optional<std::uint64_t>(static_cast<std::uint64_t>(p.background)); },
     .set = [](Policy& p, std::uint64_t v) { p.background = static_cast<Background>(v); }},

    {.name = "limits.wall",
     .kind = Kind::kNumber,
     .initial = "5m",
     .doc = "Wall-clock time until everything is killed",
     .flag = "--wall",
     .argument = "TIME",
     .example = "30s",
     .unit = Unit::kDuration,
     .min = kMillisecond,
     .max = kYear,
     .get = [](const Policy& p) { return std::optional(p.limits.wall_ns); },
     .set = [](Policy& p, std::uint64_t v) { p.limits.wall_ns = v; }},
    {.name = "limits.cpu_time",
     .kind = Kind::kNumber,
     .initial = "unlimited",
     .doc = "CPU time of all processes together",
     .flag = "--cpu-time",
     .argument = "TIME",
     .example = "1.5s",
     .unit = Unit::kDuration,
     .min = kMillisecond,
     .max = kYear,
     .get = [](const Policy& p) { return std::optional(p.limits.cpu_time_ns); },
     .set = [](Policy& p, std::uint64_t v) { p.limits.cpu_time_ns = v; }},
    {.name = "limits.cpus",
     .kind = Kind::kNumber,
     .initial = "unlimited",
     .doc = "CPUs that may be busy at once",
     .flag = "--cpus",
     .argument = "N",
     .example = "0.5",
     .unit = Unit::kCpus,
     .min = 10,
     .max = 1'000'000'000,
     .get = [](const Policy& p) { return std::optional(p.limits.cpus_milli); },
     .set = [](Policy& p, std::uint64_t v) { p.limits.cpus_milli = v; }},
    {.name = "limits.memory",
     .kind = Kind::kNumber,
     .initial = "2G",
     .doc = "Memory of all processes together, /tmp and workdir included",
     .flag = "--memory",
     .argument = "SIZE",
     .example = "512M",
     .unit = Unit::kBytes,
     .min = kMebibyte,
     .max = kExbibyte,
     .get = [](const Policy& p) { return std::optional(p.limits.memory); },
     .set = [](Policy& p, std::uint64_t v) { p.limits.memory = v; }},
    {.name = "limits.processes",
     .kind = Kind::kNumber,
     .initial = "256",
     .doc = "Processes and threads alive at once",
     .flag = "--processes",
     .argument = "N",
     .example = "64",
     .min = 1,
     .max = kManyThings,
     .get = [](const Policy& p) { return std::optional(p.limits.processes); },
     .set = [](Policy& p, std::uint64_t v) { p.limits.processes = v; }},
    {.name = "limits.open_files",
     .kind = Kind::kNumber,
     .initial = "512",
     .doc = "Files one process may hold open",
     .flag = "--open-files",
     .argument = "N",
     .example = "256",
     .min = 4,  // three are standard streams; with fewer not even the program can be opened
     .max = kManyThings,
     .get = [](const Policy& p) { return std::optional(p.limits.open_files); },
     .set = [](Policy& p, std::uint64_t v) { p.limits.open_files = v; }},
    {.name = "limits.file_size",
     .kind = Kind::kNumber,
     .initial = "unlimited",
     .doc = "Size of any one file that is written",
     .flag = "--file-size",
     .argument = "SIZE",
     .example = "16M",
     .unit = Unit::kBytes,
     .min = 0,  // zero is a wish: may write no file at all
     .max = kExbibyte,
     .get = [](const Policy& p) { return std::optional(p.limits.file_size); },
     .set = [](Policy& p, std::uint64_t v) { p.limits.file_size = v; }},
    {.name = "limits.disk",
     .kind = Kind::kNumber,
     .initial = "512M",
     .doc = "Room in the private workdir and home",
     .flag = "--disk",
     .argument = "SIZE",
     .example = "1G",
     .unit = Unit::kBytes,
     .min = kPage,  // tmpfs reads a size of zero as no limit
     .max = kExbibyte,
     .get = [](const Policy& p) { return std::optional(p.limits.disk); },
     .set = [](Policy& p, std::uint64_t v) { p.limits.disk = v; }},
    {.name = "limits.files",
     .kind = Kind::kNumber,
     .initial = "100000",
     .doc = "Files and directories in each private filesystem",
     .flag = "--files",
     .argument = "N",
     .example = "10000",
     .min = 16,  // the filesystem's own directories count; tmpfs reads zero as no limit
     .max = kManyThings,
     .get = [](const Policy& p) { return std::optional(p.limits.files); },
     .set = [](Policy& p, std::uint64_t v) { p.limits.files = v; }},
    {.name = "limits.output",
     .kind = Kind::kNumber,
     .initial = "",
     .doc = "Bytes kept of each output stream; when it is not set 64K captured, 64M streamed",
     .flag = "--output",
     .argument = "SIZE",
     .example = "64K",
     .unit = Unit::kBytes,
     .min = 0,
     .max = kExbibyte,
     .get = [](const Policy& p) { return p.limits.output; },
     .set = [](Policy& p, std::uint64_t v) { p.limits.output = v; }},

    {.name = "files.system",
     .kind = Kind::kChoice,
     .initial = "usr",
     .doc = "Which programs of the host are there, read-only: usr (/usr, /bin, /lib and the like) or none",
     .flag = "--system",
     .argument = "usr|none",
     .example = "usr",
     .choices = kSystems,
     .get = [](const Policy& p) { return std::optional<std::uint64_t>(static_cast<std::uint64_t>(p.files.system)); },
     .set = [](Policy& p, std::uint64_t v) { p.files.system = static_cast<SystemFiles>(v); }},
    {.name = "files.mounts",
     .kind = Kind::kMounts,
     .initial = "",
     .doc = "Files and directories of the host that the guest may see",
     .flag = "",
     .argument = "SRC[:DST]",
     .example = "/srv/data:/data"},
    {.name = "files.tmp",
     .kind = Kind::kNumber,
     .initial = "256M",
     .doc = "Room in /tmp and /dev/shm together",
     .flag = "--tmp",
     .argument = "SIZE",
     .example = "64M",
     .unit = Unit::kBytes,
     .min = kPage,
     .max = kExbibyte,
     .get = [](const Policy& p) { return std::optional(p.files.tmp); },
     .set = [](Policy& p, std::uint64_t v) { p.files.tmp = v; }},
    {.name = "files.hide",
     .kind = Kind::kTextList,
     .initial = "",
     .doc = "Paths of the guest to cover with something empty and unreadable; with * and ?, and ** for any depth",
     .flag = "--hide",
     .argument = "PATH",
     .example = "/data/secrets",
     .list = [](Policy& p) -> std::vector<std::string>& { return p.files.hide; }},
    {.name = "files.protect",
     .kind = Kind::kTextList,
     .initial = "default",
     .doc =
         "Names in writable mounts that stay read-only; default: what your own tools would execute later (git hooks, "
         "shell start-up files, editor settings)",
     .flag = "--protect",
     .argument = "NAME",
     .example = "Makefile",
     .list = [](Policy& p) -> std::vector<std::string>& { return p.files.protect; }},
    {.name = "files.workdir",
     .kind = Kind::kText,
     .initial = "",
     .doc = "Directory the command starts in; a private /workspace when it is not set",
     .flag = "--workdir",
     .argument = "PATH",
     .example = "/data",
     .text = [](Policy& p) -> std::string& { return p.files.workdir; }},

    {.name = "network.mode",
     .kind = Kind::kChoice,
     .initial = "none",
     .doc = "Network: none, allow (only the allow list), full (public addresses), host (shared with the host)",
     .flag = "--net",
     .argument = "MODE",
     .example = "none",
     .choices = kModes,
     .get = [](const Policy& p) { return std::optional<std::uint64_t>(static_cast<std::uint64_t>(p.network.mode)); },
     .set = [](Policy& p, std::uint64_t v) { p.network.mode = static_cast<NetworkMode>(v); }},
    {.name = "network.allow",
     .kind = Kind::kTextList,
     .initial = "",
     .doc = "Names that mode allow lets through",
     .flag = "--allow",
     .argument = "RULE",
     .example = "*.example.com:443",
     .list = [](Policy& p) -> std::vector<std::string>& { return p.network.allow; }},

    {.name = "environment.set",
     .kind = Kind::kTextMap,
     .initial = "",
     .doc = "Environment variables for the command",
     .flag = "--env",
     .argument = "NAME=VALUE",
     .example = "LANG=C.UTF-8"},
    {.name = "environment.pass",
     .kind = Kind::kTextList,
     .initial = "",
     .doc = "Environment variables of the caller to hand on by name",
     .flag = "--pass-env",
     .argument = "NAME",
     .example = "TERM",
     .list = [](Policy& p) -> std::vector<std::string>& { return p.environment.pass; }},
});

}  // namespace

std::string_view Key::section() const {
  const std::size_t dot = name.find('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

std::string_view Key::leaf() const { return name.substr(name.find('.') + 1); }

std::span<const Key> Keys() { return kKeys; }

const Key* FindKey(std::string_view name) {
  for (const Key& key : kKeys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

std::string FormatValue(const Key& key, std::uint64_t value) {
  if (key.kind == Kind::kChoice) return std::string(value < key.choices.size() ? key.choices[value] : "invalid");
  return value == kUnlimited ? std::string(kUnlimitedWord) : FormatNumber(key.unit, value);
}

}  // namespace belljar::policy
