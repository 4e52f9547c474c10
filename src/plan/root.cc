// The guest's file view: a root from nothing, into which only what the policy names is mounted.
#include <linux/mount.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "plan/protect.h"
#include "plan/sections.h"
#include "sys/files.h"
#include "sys/mount_table.h"
#include "sys/process.h"

namespace belljar::plan {
namespace {

constexpr std::uint64_t kReadOnlyTree = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr std::uint64_t kWritableTree = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
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
constexpr char kMaskSource[] = "/dev/.hidden";
// What the kernel shows of the host: no mount brings it inside.
constexpr std::array kKernelTrees = {"/proc", "/sys", "/dev"};

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

enum class Place : std::uint8_t {
  kOwn,    ///< In the new root itself.
  kMount,  ///< Below a mount of the policy's.
};

class FileView {
 public:
  FileView(Draft& draft, std::vector<std::string> kernel_mounts)
      : draft_(draft), builder_(draft.builder), kernel_mounts_(std::move(kernel_mounts)) {}

  void MakeParents(std::string_view path) {
    for (std::size_t slash = path.find('/', 1); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
      MakeDirectory(path.substr(0, slash));
    }
  }
  void MakeDirectory(std::string_view path) {
    if (std::ranges::find(made_, path) != made_.end()) return;
    made_.emplace_back(path);
    builder_.Add(Op::kDirectory, {.text = path, .value = 0755});
  }
  // SECURITY: on the way to what the policy or a link names there may be a link of the new root, which would be
  // followed on the host.
  void MakeParentsGuarded(std::string_view path) {
    for (std::size_t slash = path.find('/', 1); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
      const std::string_view parent = path.substr(0, slash);
      if (std::ranges::find(made_, parent) != made_.end()) continue;
      made_.emplace_back(parent);
      builder_.Add(Op::kMountPoint,
                   {.text = parent, .value = 0, .more_value = static_cast<std::uint64_t>(Reach::kGuarded)});
    }
  }
  void AddSymlink(std::string_view path, std::string_view target, Reach reach) {
    builder_.Add(Op::kSymlink, {.text = path, .more = target, .more_value = static_cast<std::uint64_t>(reach)});
  }
  void BindTree(const std::string& source, const std::string& target, std::uint64_t attributes, sys::FileKind kind,
                Reach reach = Reach::kDirect, Place place = Place::kOwn, int slot = -1) {
    const auto how = static_cast<std::uint64_t>(reach);
    const std::uint64_t is_file = kind == sys::FileKind::kDirectory ? 0 : 1;
    // Below another mount nothing is made: that would be on the host, and a guest's link could lead it anywhere.
    if (place == Place::kOwn) {
      if (reach == Reach::kGuarded) MakeParentsGuarded(target);
      if (reach == Reach::kDirect) MakeParents(target);
      builder_.Add(Op::kMountPoint, {.text = target, .value = is_file, .more_value = how});
    }
    builder_.Add(Op::kBind, {.text = target, .more = source, .value = attributes, .more_value = how, .slot = slot});
    bound_.push_back({source, target});
  }

  void System();
  void Etc();
  void Devices();
  void Proc();
  void Scratch();
  std::expected<void, CompileError> Mounts();
  void HideKernelMounts();

 private:
  std::expected<void, CompileError> Protect(const Mount& mount, int slot);
  void HoldFast(const Mount& outer, std::string_view target, int slot);
  void Hide(const std::string& path, Cover cover) {
    builder_.Add(Op::kMask, {.text = path, .more = kMaskSource, .value = static_cast<std::uint64_t>(cover)});
  }

  Draft& draft_;
  Builder& builder_;
  std::vector<std::string> made_;
  std::vector<std::string> held_;
  struct Bound {
    std::string source;
    std::string target;
  };
  std::vector<Bound> bound_;  ///< In the order in which they are mounted.
  std::vector<std::string> kernel_mounts_;
};

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
  builder_.Add(Op::kDevpts, {.text = "/dev/pts",
                             .more = Options({{"ptmxmode", "0666"},
                                              {"mode", "0620"},
                                              {"uid", owner},
                                              {"gid", owner},
                                              // Of those that all instances share, other sandboxes want some too.
                                              {"max", "64"}})});
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

CompileError Mistake(std::string step, std::string message, std::string hint) {
  return {Fault::kCaller, Error{.step = std::move(step), .message = std::move(message), .hint = std::move(hint)}};
}

// A source must be there and be what it is called: a link in its path may be an earlier guest's.
std::expected<void, CompileError> CheckSource(const Mount& mount, Form form, std::vector<std::string> kernel) {
  const auto real = sys::RealPath(mount.source);
  if (!real) {
    return std::unexpected(Mistake("mount " + mount.source, "no such file or directory, or it can't be looked at",
                                   "make it first; Belljar creates nothing on the host"));
  }
  if (*real != mount.source) {
    return std::unexpected(Mistake("mount " + mount.source, "it is, or goes through, a link to " + *real,
                                   "write " + *real + " if that is what you mean"));
  }
  kernel.insert(kernel.end(), kKernelTrees.begin(), kKernelTrees.end());
  for (const std::string& tree : kernel) {
    if (sys::IsWithin(*real, tree)) {
      return std::unexpected(Mistake("mount " + mount.source, "nothing of the host's " + tree + " can be mounted",
                                     "the guest has a /proc and /dev of its own"));
    }
    // Where nothing can be mounted nothing can be covered either.
    if (form == Form::kLandlockOnly && sys::IsWithin(tree, *real)) {
      return std::unexpected(
          Mistake("mount " + mount.source, "the kernel shows the host in " + tree, "name the parts that are needed"));
    }
  }
  return {};
}

std::expected<void, CompileError> CheckWorkdir(const std::string& workdir) {
  for (const char* taken : {"/proc", "/dev", "/sys"}) {
    if (workdir != "/" && !sys::IsWithin(workdir, taken)) continue;
    return std::unexpected(Mistake("use " + workdir + " as the working directory", "it is not a place for files",
                                   "choose another, such as /workspace"));
  }
  return {};
}

// SECURITY: what is only on the way to a mount can be moved away with it, and something else put in its place. So each
// directory between a writable mount and a mount inside it becomes a mount of its own, which nobody can move.
void FileView::HoldFast(const Mount& outer, std::string_view target, int slot) {
  if (outer.access != Access::kReadWrite) return;
  for (std::size_t slash = target.find('/', outer.target.size() + 1); slash != std::string_view::npos;
       slash = target.find('/', slash + 1)) {
    const std::string at(target.substr(0, slash));
    if (std::ranges::find(held_, at) != held_.end()) continue;
    held_.push_back(at);
    const std::string source = outer.source + at.substr(outer.target.size());
    BindTree(source, at, kWritableTree, sys::FileKind::kDirectory, Reach::kGuarded, Place::kMount, slot);
    draft_.out.guarded.push_back(source);
  }
}

// SECURITY: before mounts that lie inside this one, which are the policy's own word about a place in it.
std::expected<void, CompileError> FileView::Protect(const Mount& mount, int slot) {
  const ProtectedFiles files = FindProtected(draft_.request.policy, mount);
  const auto refuse = [](const std::vector<ProtectedFile>& those, std::string why) {
    constexpr std::size_t kMostTold = 3;
    std::set<std::string> patterns;
    for (const ProtectedFile& file : those) patterns.insert(base::ShellWord(file.pattern));
    if (patterns.size() > kMostTold) patterns = {"all"};
    return std::unexpected(Mistake("protect " + those.front().source, std::move(why),
                                   fmt::format("give it up with --unprotect {}, or mount another directory",
                                               fmt::join(patterns, " --unprotect "))));
  };
  if (!files.links.empty()) {
    return refuse(files.links, "it is a link, which a guest that may write the directory could replace");
  }
  if (!files.unsearched.empty()) {
    return refuse(files.unsearched, "it holds too many names to look through, or can't be read");
  }
  for (const ProtectedFile& file : files.present) HoldFast(mount, file.target, slot);
  for (const ProtectedFile& file : files.present) {
    BindTree(file.source, file.target, kReadOnlyTree, file.kind, Reach::kGuarded, Place::kMount, slot);
    draft_.out.guarded.push_back(file.source);
    draft_.protected_paths.push_back(file.target);
  }
  for (const ProtectedFile& file : files.absent) draft_.out.unguarded.push_back({file.source, file.target});
  return {};
}

std::expected<void, CompileError> FileView::Mounts() {
  const Policy& policy = draft_.request.policy;
  for (const Brought& brought : draft_.command.brought) {
    BindTree(brought.path, brought.path, kReadOnlyTree, sys::LinkStatus(brought.path).kind, Reach::kGuarded);
  }
  for (const sys::Link& link : draft_.command.links) {
    MakeParentsGuarded(link.at);
    AddSymlink(link.at, link.target, Reach::kGuarded);
  }
  std::vector<Mount> mounts = policy.files.mounts;
  std::map<std::string, int> slots;  // The id map of each, by its target.
  // Outer before inner, whatever their order in the policy.
  std::ranges::stable_sort(mounts, {}, [](const Mount& m) { return std::ranges::count(m.target, '/'); });
  for (const Mount& mount : mounts) {
    const sys::FileStatus status = sys::Status(mount.source);
    const Mount* outer = nullptr;  // The innermost of those that this one lies in; they are sorted by depth.
    for (const Mount& other : mounts) {
      if (other.target != mount.target && sys::IsWithin(mount.target, other.target)) outer = &other;
    }
    const Place place = outer == nullptr ? Place::kOwn : Place::kMount;
    if (place == Place::kMount) {
      const std::string there = outer->source + mount.target.substr(outer->target.size());
      if (sys::LinkStatus(there).kind != status.kind) {
        return std::unexpected(Mistake("mount " + mount.source + " at " + mount.target,
                                       there + " is not there to mount on, or of another kind", "make it first"));
      }
    }
    int& slot = slots.emplace(mount.target, -1).first->second;
    if (draft_.Privileged() && status.uid != draft_.out.guest_uid) {
      auto& maps = draft_.out.id_maps;
      auto found = std::ranges::find_if(
          maps, [&](const IdMap& m) { return m.file_uid == status.uid && m.file_gid == status.gid; });
      if (found == maps.end()) found = maps.insert(maps.end(), IdMap{status.uid, status.gid});
      slot = kFirstExtraSlot + static_cast<int>(draft_.out.cgroup_paths.size() + (found - maps.begin()));
      if (slot >= kMaxSlots - kMaxChannels) {
        return std::unexpected(Mistake("mount " + mount.source, "mounts with too many different owners",
                                       "mount their common parent directory"));
      }
    }
    if (outer != nullptr) HoldFast(*outer, mount.target, slots[outer->target]);
    BindTree(mount.source, mount.target, mount.access == Access::kReadWrite ? kWritableTree : kReadOnlyTree,
             status.kind, Reach::kGuarded, place, slot);
    if (mount.access == Access::kReadWrite && status.kind == sys::FileKind::kDirectory) {
      if (auto done = Protect(mount, slot); !done) return done;
    }
  }
  for (const std::string& path : policy.files.hide) {
    for (const Mount& mount : mounts) {
      if (mount.access == Access::kReadOnly || !sys::IsWithin(path, mount.target)) continue;
      return std::unexpected(Mistake("hide " + path, mount.target + " is writable, so the guest could move it away",
                                     "mount that part of it read-only, or do not mount it"));
    }
    Hide(path, Cover::kWhatFits);
  }
  return {};
}

// SECURITY: a directory may have another system's /proc, or the host's own, mounted somewhere in it. Last of all, when
// nothing can bring it back: each place is covered where the mount that shows it in the end has it.
void FileView::HideKernelMounts() {
  for (std::size_t i = 0; i < bound_.size(); ++i) {
    const Bound& bound = bound_[i];
    const std::string source = bound.source == "/" ? "" : bound.source;
    const auto hide = [&](const std::string& at, Cover cover) {
      const std::string path = bound.target + at.substr(source.size());
      const auto covers = [&](const Bound& later) { return sys::IsWithin(path, later.target); };
      if (std::any_of(bound_.begin() + static_cast<std::ptrdiff_t>(i) + 1, bound_.end(), covers)) return;
      Hide(path, cover);
    };
    for (const std::string& at : kernel_mounts_) {
      if (at == bound.source || !sys::IsWithin(at, bound.source)) continue;
      // Under another mount, or in a directory that is closed to this user and so to any guest of it.
      if (sys::LinkStatus(at).kind != sys::FileKind::kAbsent) hide(at, Cover::kPresent);
    }
    if (!source.empty()) continue;
    for (const char* kernel : kKernelTrees) hide(kernel, Cover::kWhatFits);
  }
}

}  // namespace

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
