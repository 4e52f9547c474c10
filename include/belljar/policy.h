// belljar/policy.h: everything a run may do, as a value.
//
//   auto policy = belljar::Policy::Profile("tool").Memory("256M").ReadOnly("/srv/data", "/data");
//
// An empty policy denies: no network, no host file but the read-only system, limits on. A setter that is given a value
// it can't read ("12 parsecs") does not throw: the policy remembers the first such error, and Engine::Run refuses with
// it. Policy is a plain value without syscalls: copy it freely, share a const one between threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <belljar/error.h>
#include <belljar/level.h>
#include <belljar/limit.h>

namespace belljar {

enum class NetworkMode : std::uint8_t { kNone, kAllow, kFull, kHost };
enum class Access : std::uint8_t { kReadOnly, kReadWrite };
enum class SystemFiles : std::uint8_t { kUsr, kNone };
/// What becomes of the processes that a command of a live sandbox has started and not waited for, when it exits. What
/// does not exit by itself is always ended with all that it started.
enum class Background : std::uint8_t {
  kEnd,
  kKeep,  ///< They go on until the sandbox is closed, within its limits. Nobody reads what they write to its streams.
};
std::string_view Name(NetworkMode mode);
std::string_view Name(Access access);
std::string_view Name(SystemFiles system);
std::string_view Name(Background background);

struct Limits {
  std::uint64_t wall_ns = 300'000'000'000;  ///< Wall clock.
  std::uint64_t cpu_time_ns = kUnlimited;   ///< CPU time of all processes together.
  std::uint64_t cpus_milli = kUnlimited;    ///< How many CPUs at once, in thousandths.
  std::uint64_t memory = 2ULL << 30;        ///< Bytes, all processes together, private filesystems included.
  std::uint64_t processes = 256;            ///< Processes and threads alive at once.
  std::uint64_t open_files = 512;           ///< Per process.
  std::uint64_t file_size = kUnlimited;     ///< Bytes in one file.
  std::uint64_t disk = 512ULL << 20;        ///< Bytes in the private workdir and home.
  std::uint64_t files = 100'000;            ///< Inodes in each private filesystem.
  /// Bytes per output stream. Unset: 64K when captured, 64M when streamed. Captured output beyond it loses its middle;
  /// streamed output beyond it ends the run.
  std::optional<std::uint64_t> output;
  bool operator==(const Limits&) const = default;
};

struct Mount {
  std::string source;  ///< A path of the host.
  std::string target;  ///< Where the guest sees it.
  Access access = Access::kReadOnly;
  bool operator==(const Mount&) const = default;
};

struct Files {
  SystemFiles system = SystemFiles::kUsr;
  std::vector<Mount> mounts;
  std::uint64_t tmp = 256ULL << 20;  ///< Bytes in /tmp and /dev/shm together.
  std::vector<std::string> hide;     ///< Guest paths covered by an empty, unreadable file or directory.
  /// Names in writable mounts, as seen from the mount, that stay read-only; "default" stands for the list in
  /// docs/policy.md: what the tools of whoever owns the directory would execute later.
  std::vector<std::string> protect = {"default"};
  std::string workdir;  ///< Guest path; empty means /workspace.
  bool operator==(const Files&) const = default;
};

struct Network {
  NetworkMode mode = NetworkMode::kNone;
  std::vector<std::string> allow;
  bool operator==(const Network&) const = default;
};

struct Environment {
  std::vector<std::pair<std::string, std::string>> set;
  std::vector<std::string> pass;  ///< Names copied from the caller's environment.
  bool operator==(const Environment&) const = default;
};

class [[nodiscard]] Policy {
 public:
  Level level = Level::kKernel;
  std::optional<Level> min_level;  ///< Unset: the same as level.
  std::string profile = "default";
  Background background = Background::kEnd;
  Limits limits;
  Files files;
  belljar::Network network;
  belljar::Environment environment;

  /// The level below which a run is refused.
  Level MinLevel() const { return min_level.value_or(level); }

  /// A named profile (docs/profiles.md). An unknown name is an error that Run reports.
  static Policy Profile(std::string_view name);
  /// Reads TOML, or JSON when the name ends in ".json". One error names file, line, key and the nearest right key.
  static Expected<Policy> FromFile(const std::string& path);
  /// Reads TOML or JSON from memory; `name` is what errors call it.
  static Expected<Policy> FromToml(std::string_view text, std::string_view name);
  static Expected<Policy> FromJson(std::string_view text, std::string_view name);

  /// Sets one key by its dotted name ("limits.memory") from its human form ("512M"). Every setter below is this. A list
  /// ("files.hide") gets one more element; "profile" starts again from that profile.
  Policy& Set(std::string_view key, std::string_view value);

  Policy& AtLevel(std::string_view value) { return Set("level", value); }
  Policy& AtLeast(std::string_view value) { return Set("min_level", value); }
  Policy& Wall(std::string_view value) { return Set("limits.wall", value); }
  Policy& CpuTime(std::string_view value) { return Set("limits.cpu_time", value); }
  Policy& Cpus(std::string_view value) { return Set("limits.cpus", value); }
  Policy& Memory(std::string_view value) { return Set("limits.memory", value); }
  Policy& Processes(std::string_view value) { return Set("limits.processes", value); }
  Policy& OpenFiles(std::string_view value) { return Set("limits.open_files", value); }
  Policy& FileSize(std::string_view value) { return Set("limits.file_size", value); }
  Policy& Disk(std::string_view value) { return Set("limits.disk", value); }
  Policy& Inodes(std::string_view value) { return Set("limits.files", value); }
  Policy& OutputLimit(std::string_view value) { return Set("limits.output", value); }
  Policy& Tmp(std::string_view value) { return Set("files.tmp", value); }
  Policy& Workdir(std::string_view value) { return Set("files.workdir", value); }
  Policy& ReadOnly(std::string source, std::string target = {});   ///< target defaults to source
  Policy& ReadWrite(std::string source, std::string target = {});  ///< target defaults to source
  Policy& Hide(std::string target);
  Policy& Env(std::string name, std::string value);
  Policy& PassEnv(std::string name);

  /// Shares the host's network with the command: its loopback, its abstract sockets, its local services. Nothing in a
  /// file can do this; the program that runs the command has to say it.
  Policy& DangerouslyShareHostNetwork();
  bool host_network_granted() const { return host_network_granted_; }

  /// The first mistake made by a setter, if any.
  const std::optional<Error>& error() const { return error_; }
  void Fail(Error error);  ///< Keeps the first one.

  /// Contradictions between values that are each right by themselves. Run checks this first.
  Expected<void> Check() const;

  /// Remembers where a key's value was written ("policy.toml:3: limits.memory", "--memory"), so that Check can say it.
  /// The readers do this by themselves.
  void NoteOrigin(std::string_view key, std::string origin);

 private:
  std::optional<Error> error_;
  std::vector<std::pair<std::string_view, std::string>> origins_;  // keys are those of the library's own table
  bool host_network_granted_ = false;
};

}  // namespace belljar
