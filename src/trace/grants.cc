#include "trace/grants.h"

#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>

#include <fmt/format.h>

#include "base/json_writer.h"
#include "base/printable.h"
#include "policy/protect.h"
#include "sys/files.h"
#include "trace/sensitive.h"

namespace belljar::trace {
namespace {

using base::ShellWord;
using plan::Use;

constexpr std::string_view kGuestHome = "/tmp/home";

bool IsMissing(int error) { return error == ENOENT || error == ENOTDIR; }
bool Changes(Use use) { return use == Use::kWrite || use == Use::kCreate || use == Use::kRemove; }

std::string Parent(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

const belljar::Mount* FindMount(const Policy& policy, std::string_view path) {
  const belljar::Mount* found = nullptr;
  for (const belljar::Mount& mount : policy.files.mounts) {
    if (!sys::IsWithin(path, mount.target)) continue;
    if (found == nullptr || mount.target.size() > found->target.size()) found = &mount;
  }
  return found;
}

std::string Workdir(const Policy& policy) { return policy.files.workdir.empty() ? "/workspace" : policy.files.workdir; }

// Where on the host the guest's path may be meant to be, the likeliest first.
std::vector<std::string> HostPaths(const std::string& path, const std::string& given, const GrantScene& scene) {
  std::vector<std::string> paths;
  const std::string workdir = Workdir(scene.policy);
  if (!given.starts_with('/') && sys::IsWithin(path, workdir) && path != workdir && !scene.directory.empty()) {
    paths.push_back(scene.directory + (scene.directory.ends_with('/') ? "" : "/") + path.substr(workdir.size() + 1));
  }
  if (sys::IsWithin(path, kGuestHome) && path != kGuestHome && !scene.home.empty()) {
    paths.push_back(scene.home + path.substr(kGuestHome.size()));
  }
  paths.push_back(path);
  return paths;
}

std::optional<belljar::Mount> Offer(const std::string& host, const std::string& target, belljar::Access access,
                                    const GrantScene& scene) {
  const auto real = sys::RealPath(host);
  if (!real || IsKernelMade(*real) || HoldsSecrets(*real, scene.home) || HoldsSecrets(host, scene.home)) return {};
  const bool writes = access == belljar::Access::kReadWrite;
  if (IsTooBroad(*real, scene.home) || SecretsBelow(*real, scene.home) || (writes && IsSystem(*real))) return {};
  if (!(writes ? sys::IsWritable(*real) : sys::IsReadable(*real))) return {};
  if (!scene.can_move_mounts && *real != target) return {};
  return belljar::Mount{*real, target, access};
}

std::optional<belljar::Mount> GrantChange(const std::string& path, Use use, const std::string& host,
                                          const GrantScene& scene) {
  // What is there and only gets other contents needs itself; a name that comes or goes needs its directory.
  const bool itself = sys::LinkStatus(host).kind == sys::FileKind::kFile && use != Use::kRemove;
  if (itself) return Offer(host, path, belljar::Access::kReadWrite, scene);
  if (use == Use::kWrite) return {};
  return Offer(Parent(host), Parent(path), belljar::Access::kReadWrite, scene);
}

std::string TomlString(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

// Neither a policy nor a command line that somebody copies should hold these.
bool IsPlain(std::string_view text) {
  return base::IsUtf8(text) &&
         std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::string ErrorName(int error) {
  const char* name = ::strerrorname_np(error);
  return name == nullptr ? std::to_string(error) : name;
}

// The name in files.protect that keeps a path of a writable mount as it is.
std::optional<std::string> ProtectedBy(const Access& access, const GrantScene& scene) {
  if (access.error != EROFS && access.error != EBUSY) return {};
  const belljar::Mount* const mount = FindMount(scene.policy, access.resolved);
  if (mount == nullptr || mount->access != belljar::Access::kReadWrite) return {};
  const std::vector<std::string> names = policy::ProtectedNames(scene.policy);
  std::string rest = access.resolved.substr(mount->target.size());
  // The path itself, or the innermost of the directories that it is in.
  for (; rest.size() > 1; rest.resize(rest.rfind('/'))) {
    for (const std::string& name : names) {
      if (::fnmatch(name.c_str(), rest.c_str() + 1, FNM_PATHNAME) == 0) return name;
    }
  }
  for (const plan::ProtectedFile& file : scene.kept) {
    if (sys::IsWithin(access.resolved, file.target)) return file.pattern;
  }
  return {};
}

// Not looked for in vain: it means going through the mounts once more.
std::vector<plan::ProtectedFile> Kept(const Record& record, const Policy& policy, const std::string& home) {
  std::vector<plan::ProtectedFile> kept;
  const auto may_be = [](const Access& access) { return access.error == EROFS || access.error == EBUSY; };
  if (std::ranges::none_of(record.accesses, may_be)) return kept;
  for (const belljar::Mount& mount : policy.files.mounts) {
    for (const belljar::Mount& shown : plan::ShownBy(mount, policy))
      std::ranges::move(plan::FindProtected(policy, shown, home).present, std::back_inserter(kept));
  }
  return kept;
}

std::string FileRule(const Access& access, bool granted, const GrantScene& scene) {
  const std::string& path = access.resolved;
  const std::string name = ErrorName(access.error);
  if (HoldsSecrets(path, scene.home) || SecretsBelow(path, scene.home)) {
    return fmt::format("holds secrets, so no grant is proposed ({})", name);
  }
  if (access.error == EROFS) {
    return IsSystem(path) ? fmt::format("the system's files are read-only ({})", name)
                          : fmt::format("read-only inside ({})", name);
  }
  if (IsMissing(access.error)) {
    if (granted) return fmt::format("not inside ({})", name);
    const bool hidden = !IsKernelMade(path) && sys::LinkStatus(path).kind != sys::FileKind::kAbsent &&
                        FindMount(scene.policy, path) == nullptr;
    return hidden ? fmt::format("not inside ({})", name) : fmt::format("missing, on the host as well ({})", name);
  }
  return fmt::format("refused: {} ({})", ::strerrordesc_np(access.error), name);
}

std::string NetworkRule(const Access& access, const GrantScene& scene) {
  if (access.error == 0) return "a name was looked up, and there is no network inside";
  const std::string name = ErrorName(access.error);
  if (!scene.own_network) return fmt::format("refused: {} ({})", ::strerrordesc_np(access.error), name);
  if (IsMissing(access.error)) {
    const bool there = !access.resolved.empty() && sys::LinkStatus(access.resolved).kind != sys::FileKind::kAbsent;
    return there ? fmt::format("a socket of the host, not inside ({})", name)
                 : fmt::format("missing, on the host as well ({})", name);
  }
  if (access.error == ECONNREFUSED) return fmt::format("nobody listens there inside ({})", name);
  return fmt::format("no network inside ({})", name);
}

struct Ranked {
  std::tuple<int, int, std::uint64_t> rank;
  Denial denial;
};

std::optional<Ranked> Explain(const Access& access, const GrantScene& scene) {
  Denial denial;
  denial.operation = access.operation;
  denial.target = access.given;
  denial.count = access.count;
  const auto late = ~access.last;  // What came last is the likeliest reason of an end.
  if (IsNetwork(access.use)) {
    if (access.error == 0 && !scene.own_network) return {};
    denial.kind = "network";
    denial.rule = NetworkRule(access, scene);
    return Ranked{{IsMissing(access.error) ? 3 : 1, 0, late}, std::move(denial)};
  }
  if (access.error == 0) return {};
  denial.kind = "file";
  denial.resolved = access.resolved;
  const auto mount = FindGrant(access, scene);
  if (mount) {
    denial.grant = FlagOf(*mount);
    denial.fragment = FragmentOf(*mount);
  }
  denial.rule = FileRule(access, mount.has_value(), scene);
  const auto name = ProtectedBy(access, scene);
  if (name) {
    denial.rule = fmt::format("protected, since tools of its owner execute it ({})", ErrorName(access.error));
    denial.grant = "--unprotect " + ShellWord(*name);
  }
  if (!mount && access.found_elsewhere) return {};
  int order = IsMissing(access.error) ? 3 : 1;
  // What can be granted comes first; but libraries search in the system's own tree all day.
  const bool library = IsSystem(access.given) && !sys::IsWithin(access.given, "/etc");
  if (mount || name) order = library ? 2 : 0;
  // To look at what is not there is what programs do all day; to open it is not.
  return Ranked{{order, access.use == Use::kLook ? 1 : 0, late}, std::move(denial)};
}

}  // namespace

std::optional<belljar::Mount> FindGrant(const Access& access, const GrantScene& scene) {
  const std::string& path = access.resolved;
  if (access.error == 0 || path.empty() || IsNetwork(access.use) || IsKernelMade(path)) return {};
  if (access.error == ELOOP || access.error == EXDEV) return {};
  // What is missing can't be changed, only made.
  const bool changes = Changes(access.use) && (access.use == Use::kCreate || !IsMissing(access.error));
  if (const belljar::Mount* mount = FindMount(scene.policy, path); mount != nullptr) {
    // It is mounted: only a read-only mount can be what is in the way.
    if (!changes || mount->access == belljar::Access::kReadWrite || IsMissing(access.error)) return {};
    return Offer(mount->source, mount->target, belljar::Access::kReadWrite, scene);
  }
  for (const std::string& host : HostPaths(path, access.given, scene)) {
    std::optional<belljar::Mount> mount;
    if (changes) {
      mount = GrantChange(path, access.use, host, scene);
    } else if (host != path || !IsSystem(path) || IsMissing(access.error) || !scene.can_move_mounts) {
      mount = Offer(host, path, belljar::Access::kReadOnly, scene);
    }
    if (mount) return mount;
  }
  return {};
}

std::string FlagOf(const belljar::Mount& mount) {
  const bool same = mount.source == mount.target;
  if (!IsPlain(mount.source) || !IsPlain(mount.target)) return {};
  if (mount.source.find(":/") != std::string::npos || mount.target.find(":/") != std::string::npos) return {};
  const std::string flag = mount.access == belljar::Access::kReadWrite ? "--rw " : "--ro ";
  return flag + ShellWord(same ? mount.source : mount.source + ":" + mount.target);
}

std::string FragmentOf(const belljar::Mount& mount) {
  if (!IsPlain(mount.source) || !IsPlain(mount.target)) return {};
  const std::string target = mount.source == mount.target ? "" : fmt::format("target = {}, ", TomlString(mount.target));
  return fmt::format("files.mounts = [{{source = {}, {}access = \"{}\"}}]", TomlString(mount.source), target,
                     Name(mount.access));
}

std::vector<Denial> ExplainAccesses(const std::vector<Access>& accesses, const GrantScene& scene) {
  std::vector<Ranked> ranked;
  for (const Access& access : accesses) {
    if (auto one = Explain(access, scene)) ranked.push_back(*std::move(one));
  }
  std::ranges::stable_sort(ranked, {}, &Ranked::rank);
  std::vector<Denial> denials;
  denials.reserve(ranked.size());
  for (Ranked& one : ranked) denials.push_back(std::move(one.denial));
  return denials;
}

void AddDenials(Record record, std::optional<int> exec_failed, const Policy& policy,
                const std::vector<std::string>& argv, const Caller& caller, Result& result) {
  const GrantScene scene{.policy = policy,
                         .directory = caller.directory,
                         .home = HomeOf(caller),
                         .can_move_mounts = result.receipt.form != "landlock-only",
                         .own_network = policy.network.mode == NetworkMode::kNone,
                         .kept = Kept(record, policy, HomeOf(caller))};
  if (exec_failed) {
    // The command's own program: it was looked for before anything could be traced.
    record.accesses.push_back({.operation = "exec",
                               .use = Use::kExecute,
                               .given = argv[0],
                               .resolved = sys::Normalize(argv[0], Workdir(policy)),
                               .error = *exec_failed,
                               .last = ~std::uint64_t{0}});
  }
  std::vector<Denial> denials = ExplainAccesses(record.accesses, scene);
  result.denials.insert(result.denials.end(), std::make_move_iterator(denials.begin()),
                        std::make_move_iterator(denials.end()));
  if (record.left_out == 0) return;
  result.denials.push_back({.kind = "file",
                            .operation = "more",
                            .target = {},
                            .rule = "not recorded one by one: there were too many different ones",
                            .grant = {},
                            .count = record.left_out,
                            .resolved = {},
                            .fragment = {}});
}

}  // namespace belljar::trace
