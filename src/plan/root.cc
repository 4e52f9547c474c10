// The guest's file view: a root from nothing, with the places that every guest has. mounts.cc has what the policy adds.
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "plan/file_view.h"
#include "sys/mount_table.h"
#include "sys/process.h"

namespace belljar::plan {
namespace {

constexpr std::uint64_t kDeviceMount = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;

// Of /proc, what tells about the host and not about the guest, or has been a way out before. What only root may read
// there anyway is not listed: no guest is root.
constexpr std::array kMaskedProcFiles = {
    "bootconfig", "buddyinfo", "cgroups",       "cmdline",     "config.gz",  "consoles",    "crypto",
    "devices",    "diskstats", "dma",           "execdomains", "fb",         "interrupts",  "iomem",
    "ioports",    "kallsyms",  "kcore",         "key-users",   "keys",       "kmsg",        "locks",
    "mdstat",     "misc",      "modules",       "mtrr",        "partitions", "sched_debug", "schedstat",
    "softirqs",   "swaps",     "sysrq-trigger", "timer_list",  "vmstat",     "zoneinfo"};
constexpr std::array kMaskedProcDirectories = {"acpi",     "asound", "bus",     "driver", "dynamic_debug", "fs", "irq",
                                               "pressure", "scsi",   "sysvipc", "tty"};

// What programs need of /etc to run and what says nothing about the host's users. Small files are copied: a mount costs
// more to make and to tear down than a write.
constexpr std::array kEtcTrees = {"alternatives",    "ssl/certs",       "fonts",          "java-11-openjdk",
                                  "java-17-openjdk", "java-21-openjdk", "java-25-openjdk"};
constexpr std::array kEtcCopies = {"localtime", "timezone", "protocols", "services", "os-release", "ssl/openssl.cnf"};
constexpr std::size_t kMostCopied = 64 * 1024;

struct Device {
  const char* path;
  unsigned major;
  unsigned minor;
};

// Options of a private filesystem that holds at most `size` bytes and limits.files inodes.
std::string BoundedTmpfs(const Draft& draft, std::uint64_t size, const char* mode, unsigned owner) {
  const std::uint64_t inodes = draft.request.policy.limits.files;
  // tmpfs has defaults of its own, half of the memory; 0 is its word for none.
  const auto number = [](std::uint64_t value) { return value == kUnlimited ? "0" : std::to_string(value); };
  return Options({{"size", number(size)},
                  {"nr_inodes", number(inodes)},
                  {"mode", mode},
                  {"uid", std::to_string(owner)},
                  {"gid", std::to_string(owner)}});
}

std::expected<void, CompileError> CheckWorkdir(const std::string& workdir) {
  for (const char* taken : {"/proc", "/dev", "/sys"}) {
    if (workdir != "/" && !sys::IsWithin(workdir, taken)) continue;
    return std::unexpected(Mistake("use " + workdir + " as the working directory", "it is not a place for files",
                                   "choose another, such as /workspace"));
  }
  return {};
}

}  // namespace

void FileView::System() {
  for (const char* name : {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"}) {
    const auto status = sys::LinkStatus(name);
    if (status.kind == sys::FileKind::kSymlink) {
      AddSymlink(name, sys::ReadLink(name).value_or(""), Reach::kDirect);
    } else if (status.kind == sys::FileKind::kDirectory) {
      BindTree(name, name, kReadOnlyTree, status.kind);
    }
  }
}

void FileView::Etc() {
  MakeDirectory("/etc");
  const bool resolves = draft_.request.policy.network.mode == NetworkMode::kHost;
  // Nobody inside is root, but files in archives are, and who unpacks them asks for the name of id 0.
  const std::string passwd =
      fmt::format("root:x:0:0::/:/bin/false\n{0}:x:{1}:{1}::{2}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
                  kGuestName, draft_.InsideId(), kHome);
  const std::string group = fmt::format("root:x:0:\n{0}:x:{1}:\nnogroup:x:65534:\n", kGuestName, draft_.InsideId());
  const auto write = [&](std::string_view path, std::string_view text) {
    builder_.Add(Op::kFile, {.text = path, .more = text, .value = 0444});
  };
  write("/etc/passwd", passwd);
  write("/etc/group", group);
  write("/etc/hosts", "127.0.0.1 localhost belljar\n::1 localhost belljar\n");
  write("/etc/hostname", "belljar\n");
  write("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n");
  if (!resolves) write("/etc/resolv.conf", "# no network\n");
  if (resolves) {
    write("/etc/resolv.conf", sys::ReadSmallFile("/etc/resolv.conf", 65536).value_or("# none on the host\n"));
  }
  if (draft_.request.policy.files.system == SystemFiles::kNone) return;
  for (const char* name : kEtcTrees) {
    const std::string path = std::string("/etc/") + name;
    if (sys::Status(path).kind == sys::FileKind::kDirectory)
      BindTree(path, path, kReadOnlyTree, sys::FileKind::kDirectory);
  }
  if (sys::Status("/etc/ld.so.cache").kind == sys::FileKind::kFile) {
    BindTree("/etc/ld.so.cache", "/etc/ld.so.cache", kReadOnlyTree, sys::FileKind::kFile);
  }
  for (const char* name : kEtcCopies) {
    const std::string path = std::string("/etc/") + name;
    if (const auto target = sys::ReadLink(path); target && sys::IsWithin(sys::Normalize(*target, "/etc"), "/usr")) {
      AddSymlink(path, *target, Reach::kDirect);  // There inside as well.
      continue;
    }
    const auto text = sys::ReadSmallFile(path, kMostCopied);
    if (!text) continue;
    MakeParents(path);
    write(path, *text);
  }
}

void FileView::Devices() {
  MakeDirectory("/dev");
  constexpr std::array<Device, 6> kDevices = {{{"/dev/null", 1, 3},
                                               {"/dev/zero", 1, 5},
                                               {"/dev/full", 1, 7},
                                               {"/dev/random", 1, 8},
                                               {"/dev/urandom", 1, 9},
                                               {"/dev/tty", 5, 0}}};
  if (draft_.Privileged()) {
    // Nodes instead of mounts: cheaper to make and to tear down, and only root can.
    builder_.Add(Op::kTmpfs, {.text = "/dev",
                              .more = Options({{"size", "64k"}, {"nr_inodes", "64"}, {"mode", "0755"}}),
                              .value = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC});
    for (const Device& device : kDevices) {
      builder_.Add(Op::kDevice, {.text = device.path, .value = makedev(device.major, device.minor)});
    }
  } else {
    for (const Device& device : kDevices) {
      BindTree(device.path, device.path, kDeviceMount, sys::FileKind::kFile);
    }
  }
  MakeDirectory("/dev/pts");
  const std::pair<const char*, const char*> links[] = {
      {"/dev/ptmx", "pts/ptmx"},          {"/dev/fd", "/proc/self/fd"},       {"/dev/stdin", "/proc/self/fd/0"},
      {"/dev/stdout", "/proc/self/fd/1"}, {"/dev/stderr", "/proc/self/fd/2"}, {"/dev/shm", "/tmp/.shm"}};
  for (const auto& [link, target] : links) AddSymlink(link, target, Reach::kDirect);
  if (draft_.Privileged()) {
    // SECURITY: read-only before anything is covered with parts of it: a cover is as read-only as what it is a copy of.
    builder_.Add(Op::kDirectory, {.text = kMaskSource, .value = 0});
    builder_.Add(Op::kReadOnly, {.text = "/dev"});
  } else {
    builder_.Add(Op::kMaskSource, {.text = kMaskSource});
  }
  const std::string owner = std::to_string(draft_.Owner());  // Of the terminal that init opens, too.
  // Of those that all instances share, other sandboxes want some too.
  const std::string options =
      Options({{"ptmxmode", "0666"}, {"mode", "0620"}, {"uid", owner}, {"gid", owner}, {"max", "64"}});
  builder_.Add(Op::kDevpts, {.text = "/dev/pts", .more = options});
  if (draft_.request.command == CommandKnown::kMany) builder_.Add(Op::kTerminals, {.more = options});
}

void FileView::Proc() {
  // Empty and readable: "no such file" is an answer that programs expect there, "permission denied" makes some give up.
  MakeDirectory("/sys");
  MakeDirectory("/proc");
  builder_.Add(Op::kProc, {.text = "/proc"});
  const auto mask = [&](const char* name, Cover cover) {
    builder_.Add(
        Op::kMask,
        {.text = std::string("/proc/") + name, .more = kMaskSource, .value = static_cast<std::uint64_t>(cover)});
  };
  for (const char* name : kMaskedProcFiles) mask(name, Cover::kFile);
  for (const char* name : kMaskedProcDirectories) mask(name, Cover::kDirectory);
  // /proc/sys as a whole is replaced by the few values that programs read.
  builder_.Add(Op::kTmpfs, {.text = "/proc/sys",
                            .more = Options({{"size", "64k"}, {"nr_inodes", "64"}, {"mode", "0755"}}),
                            .value = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC});
  for (const char* directory : {"kernel", "kernel/random", "vm"}) {
    builder_.Add(Op::kDirectory, {.text = std::string("/proc/sys/") + directory, .value = 0755});
  }
  const auto copy = [&](const std::string& path, const char* otherwise) {
    const std::string text = sys::ReadSmallFile(path, 256).value_or(otherwise);
    builder_.Add(Op::kFile, {.text = path, .more = text, .value = 0444});
  };
  const auto write = [&](const char* path, std::string_view text) {
    builder_.Add(Op::kFile, {.text = path, .more = text, .value = 0444});
  };
  write("/proc/sys/kernel/pid_max", "32768\n");
  write("/proc/sys/kernel/random/uuid", sys::MakeUuid() + "\n");  // One for each run.
  copy("/proc/sys/vm/overcommit_memory", "0\n");
  copy("/proc/sys/vm/max_map_count", "65530\n");
  write("/proc/sys/kernel/osrelease", draft_.request.facts.release + "\n");
  write("/proc/sys/kernel/cap_last_cap", "40\n");
  builder_.Add(Op::kReadOnly, {.text = "/proc/sys"});
  builder_.Add(Op::kReadOnly, {.text = "/proc"});
}

// The private, bounded, writable places.
void FileView::Scratch() {
  const Policy& policy = draft_.request.policy;
  const unsigned owner = draft_.Owner();
  const std::uint64_t own = std::uint64_t{owner} + 1;
  MakeDirectory("/tmp");
  builder_.Add(Op::kTmpfs,
               {.text = "/tmp", .more = BoundedTmpfs(draft_, policy.files.tmp, "1777", owner), .value = kWritableTree});
  builder_.Add(Op::kDirectory, {.text = "/tmp/.shm", .value = 0700, .more_value = own});
  builder_.Add(Op::kDirectory, {.text = kHome, .value = 0700, .more_value = own});
  std::vector<std::string> disks = {"/tmp"};
  const bool mounted =
      std::ranges::any_of(policy.files.mounts, [&](const Mount& m) { return sys::IsWithin(draft_.workdir, m.target); });
  if (!mounted && sys::IsWithin(draft_.workdir, "/tmp")) {
    // Each part of the way is the guest's, as if it had made them itself.
    for (std::size_t slash = draft_.workdir.find('/', 5); draft_.workdir != "/tmp";
         slash = draft_.workdir.find('/', slash + 1)) {
      builder_.Add(Op::kDirectory, {.text = draft_.workdir.substr(0, slash), .value = 0755, .more_value = own});
      if (slash == std::string::npos) break;
    }
  } else if (!mounted) {
    MakeParents(draft_.workdir);
    MakeDirectory(draft_.workdir);
    builder_.Add(Op::kTmpfs, {.text = draft_.workdir,
                              .more = BoundedTmpfs(draft_, policy.limits.disk, "0755", owner),
                              .value = kWritableTree});
    disks.insert(disks.begin(), draft_.workdir);
  }
  builder_.SetDiskPaths(disks);
}

std::expected<void, CompileError> AddFiles(Draft& draft) {
  Builder& builder = draft.builder;
  const auto kernel_mounts = sys::KernelMounts();
  if (!kernel_mounts) {
    return std::unexpected(Mistake("read /proc/self/mountinfo", "nobody can tell what is mounted in a directory",
                                   "mount a /proc that this user can read"));
  }
  FileView view(draft, *kernel_mounts);
  for (const Mount& mount : draft.request.policy.files.mounts) {
    if (auto good = CheckSource(mount, draft.choice.form, *kernel_mounts); !good) return good;
  }
  if (draft.choice.form == Form::kNamespaces) {
    if (auto good = CheckWorkdir(draft.workdir); !good) return good;
    builder.Add(Op::kPrivateMounts);
    builder.Add(Op::kNewRoot, {.text = Options({{"size", "1m"}, {"nr_inodes", "4096"}, {"mode", "0755"}})});
    if (draft.request.policy.files.system == SystemFiles::kUsr) view.System();
    view.Etc();
    view.Devices();
    view.Proc();
    view.Scratch();
    if (auto mounted = view.Mounts(); !mounted) return mounted;
    view.HideKernelMounts();
    builder.Add(Op::kSealRoot);
    builder.Add(Op::kPivot);
    if (view.has_covers()) builder.Add(Op::kWatchCovers);
    return {};
  }
  std::string temporary = draft.request.caller.Variable("TMPDIR").value_or("");
  if (!temporary.starts_with('/')) temporary = "/tmp";
  draft.out.private_directory = temporary + "/belljar-" + draft.request.run_id;
  if (draft.workdir.empty()) draft.workdir = draft.out.private_directory;
  if (draft.choice.form != Form::kProcessNamespaces) return {};
  // The host's tree as it is, but for a /proc that fits the pids and a bounded filesystem over the private directory.
  builder.Add(Op::kPrivateMounts);
  builder.Add(Op::kHostRoot);
  builder.Add(Op::kProc, {.text = "/proc"});
  builder.Add(Op::kTmpfs,
              {.text = draft.out.private_directory,
               .more = BoundedTmpfs(draft, draft.request.policy.limits.disk, "0700", draft.request.facts.uid),
               .value = kWritableTree});
  builder.SetDiskPaths({draft.out.private_directory});
  return {};
}

}  // namespace belljar::plan
