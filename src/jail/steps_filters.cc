// What the guest may ask of the kernel: rlimits, capabilities, Landlock, seccomp.
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/context.h"

namespace belljar::jail {
namespace {

// struct landlock_ruleset_attr of ABI 6; older kernels take a prefix of it whose length tells the version.
struct RulesetAttr {
  std::uint64_t handled_access_fs;
  std::uint64_t handled_access_net;
  std::uint64_t scoped;
};

int LandlockRules(Context& context, const plan::Step& step) {
  RulesetAttr attributes = {step.value, step.more_value, static_cast<std::uint64_t>(step.slot)};
  std::size_t size = sizeof(std::uint64_t);
  if (attributes.handled_access_net != 0) size = 2 * sizeof(std::uint64_t);
  if (attributes.scoped != 0) size = sizeof attributes;
  context.landlock = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, size, 0));
  return context.landlock < 0 ? -1 : 0;
}

// A domain of its own that restricts nothing but whom init may signal.
int ScopeSignals(Context& context) {
  const RulesetAttr attributes = {0, 0, 1U << 1};  // LANDLOCK_SCOPE_SIGNAL, ABI 6
  const auto ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0));
  if (ruleset < 0) return -1;
  context.detail = 1;
  const auto result = syscall(SYS_landlock_restrict_self, ruleset, 0);
  const int saved = errno;
  close(ruleset);
  errno = saved;
  return static_cast<int>(result);
}

int LandlockAllow(Context& context, const plan::Step& step) {
  // SECURITY: where others may have written, a link on the way could make a rule for something else.
  struct open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  if (static_cast<plan::Reach>(step.more_value) == plan::Reach::kGuarded) {
    how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  }
  const auto path =
      static_cast<int>(syscall(SYS_openat2, AT_FDCWD, plan::Text(context.plan, step.text), &how, sizeof how));
  if (path < 0) return errno == ENOENT && step.slot == 1 ? 0 : -1;
  struct landlock_path_beneath_attr rule = {};
  rule.allowed_access = step.value;
  rule.parent_fd = path;
  context.detail = 1;
  const auto result = syscall(SYS_landlock_add_rule, context.landlock, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  const int saved = errno;
  close(path);
  errno = saved;
  return static_cast<int>(result);
}

int Rlimit(Context& context, const plan::Step& step) {
  // A bound may be lower than asked for, where the caller's own is; it is never higher.
  struct rlimit limit = {};
  if (syscall(SYS_prlimit64, 0, step.value, nullptr, &limit) != 0) return -1;
  if (step.more_value < limit.rlim_max) limit.rlim_max = step.more_value;
  limit.rlim_cur = limit.rlim_max;
  context.detail = 1;
  return static_cast<int>(syscall(SYS_prlimit64, 0, step.value, &limit, nullptr));
}

int Affinity(const plan::Step& step) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return -1;
  std::uint64_t left = step.value;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    if (left == 0) CPU_CLR(cpu, &allowed);
    if (left > 0) --left;
  }
  return sched_setaffinity(0, sizeof allowed, &allowed);
}

int DropCapabilities(Context& context, const plan::Step& step) {
  // The bounding set first: taking from it needs CAP_SETPCAP, which goes last. EINVAL ends the kernel's list.
  const bool look = step.value == 3;
  for (int capability = 0; step.value != 0 && capability < 64; ++capability) {
    const int result = prctl(look ? PR_CAPBSET_READ : PR_CAPBSET_DROP, capability, 0, 0, 0);
    if (result == 0) continue;
    if (result > 0) {
      errno = EPERM;
      return -1;
    }
    if (errno != EINVAL || capability == 0) return -1;
    break;
  }
  if (step.value == 2) return 0;
  context.detail = 1;
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2] = {};
  if (syscall(SYS_capset, &header, none) != 0) return -1;
  context.detail = 2;
  return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

// SECURITY: it only asks for stops and allows all else; the allow-list that is loaded after it decides.
int TraceFilter(Context& context) {
  struct sock_fprog program = {};
  program.len = static_cast<unsigned short>(context.plan.trace_filter_length);
  program.filter = const_cast<sock_filter*>(plan::Filter(context.plan, context.plan.trace_filter));
  return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

int Seccomp(Context& context, const plan::Step& step) {
  struct sock_fprog program = {};
  program.len = static_cast<unsigned short>(context.plan.filter_length);
  program.filter = const_cast<sock_filter*>(plan::Filter(context.plan, context.plan.filter));
  const bool listen = step.value == 1;
  const auto result =
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, listen ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0, &program);
  if (result < 0) return -1;
  if (!listen) return 0;
  plan::Report report = {};
  report.kind = plan::ReportKind::kListener;
  context.detail = 1;
  const int sent = SendReport(context, report, static_cast<int>(result));
  close(static_cast<int>(result));
  return sent;
}

}  // namespace

int DoFilterStep(Context& context, const plan::Step& step) {
  switch (step.op) {
    case plan::Op::kRlimit: return Rlimit(context, step);
    case plan::Op::kCommandRlimit: return Rlimit(context, step);
    case plan::Op::kScopeSignals: return ScopeSignals(context);
    case plan::Op::kAffinity: return Affinity(step);
    case plan::Op::kDropCapabilities: return DropCapabilities(context, step);
    case plan::Op::kNoNewPrivileges: return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    case plan::Op::kLandlockRules: return LandlockRules(context, step);
    case plan::Op::kLandlockAllow: return LandlockAllow(context, step);
    case plan::Op::kLandlockEnforce: return static_cast<int>(syscall(SYS_landlock_restrict_self, context.landlock, 0));
    case plan::Op::kTraceFilter: return TraceFilter(context);
    case plan::Op::kSeccomp: return Seccomp(context, step);
    default: errno = EINVAL; return -1;
  }
}

}  // namespace belljar::jail
