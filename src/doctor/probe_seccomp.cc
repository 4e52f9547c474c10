#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>

#include <fmt/format.h>

#include "doctor/probe_child.h"
#include "doctor/probe_filters.h"
#include "sys/kernel_constants.h"

namespace belljar::doctor {
namespace {

// The call that the probes' filters single out: harmless, never failing, and not used by them otherwise.
constexpr unsigned kVictim = SYS_getppid;
constexpr int kAnswer = 1234;  // no errno and no pid of a parent that is likely

// Installs a filter that gives `action` to kVictim and allows all else. Returns what seccomp(2) returned.
long InstallFilter(unsigned action, unsigned long flags) {
  sock_filter code[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, kVictim},
      {BPF_RET | BPF_K, 0, 0, action},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program{.len = static_cast<unsigned short>(std::size(code)), .filter = code};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

Trial TryFilter(unsigned long flags) {
  return TryInChild(0, [=] {
    if (InstallFilter(SECCOMP_RET_ERRNO | kAnswer, flags) != 0) return Finding::Failed("install a filter");
    if (::syscall(kVictim) != -1 || errno != kAnswer) return Finding::Failed("refuse a call", 0);
    return Finding::Passed();
  });
}

Trial TryKill() {
  return TryInChild(0, [] {
    if (InstallFilter(SECCOMP_RET_KILL_PROCESS, 0) != 0) return Finding::Failed("install a filter");
    ::syscall(kVictim);
    return Finding::Failed("kill", 0);
  });
}

// Answers one notification on behalf of a guest, as the denial recorder does.
Finding AnswerOne(int listener) {
  pollfd ready{.fd = listener, .events = POLLIN};
  if (::poll(&ready, 1, 1000) != 1) return Finding::Failed("wait for a notification", ETIMEDOUT);
  seccomp_notif request{};
  if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) return Finding::Failed("receive a notification");
  seccomp_notif_resp answer{.id = request.id, .val = kAnswer};
  if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) != 0) return Finding::Failed("answer a notification");
  return Finding::Passed();
}

Trial TryNotification(unsigned long flags) {
  return TryInChild(0, [=] {
    const long listener = InstallFilter(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER | flags);
    if (listener < 0) return Finding::Failed("get a listener");
    const long guest = RawFork();
    if (guest < 0) return Finding::Failed("fork");
    if (guest == 0) {
      // Not by getppid() alone: if nobody answers, this child must not wait for ever.
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::_exit(::syscall(kVictim) == kAnswer ? 0 : 1);
    }
    Finding report = AnswerOne(static_cast<int>(listener));
    if (report.step != nullptr) ::kill(static_cast<pid_t>(guest), SIGKILL);
    int status = 0;
    ::waitpid(static_cast<pid_t>(guest), &status, __WALL);
    if (report.step == nullptr && status != 0) report = Finding::Failed("get the answer", 0);
    return report;
  });
}

Probe ProbeNotification() {
  Probe probe{.name = "seccomp notification",
              .group = ProbeGroup::kFilters,
              .purpose = "refused system calls appear in the result's denials"};
  const Trial trial = TryNotification(0);
  if (trial.passed()) {
    probe.state = ProbeState::kOk;
    if (!TryNotification(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV).passed()) {
      probe.detail = "without WAIT_KILLABLE_RECV (Linux 5.19): signals may interrupt a call that is being answered";
    }
  } else if (trial.error == EBUSY) {
    probe.detail =
        "this process is itself under a filter with a listener, and the kernel allows only one; calls are "
        "still refused, but not reported";
    probe.fix = "start belljar outside the other sandbox or container that listens";
  } else if (trial.error == EINVAL) {
    probe.detail = "this kernel does not have it; calls are still refused, but not reported";
    probe.fix = "boot Linux 5.0 or newer";
  } else {
    probe.detail = trial.Text() + "; calls are still refused, but not reported";
  }
  return probe;
}

}  // namespace

Probes ProbeSeccomp() {
  Probe filter{.name = "seccomp filter",
               .group = ProbeGroup::kFilters,
               .purpose = "only the system calls that programs need can be made at all"};
  if (const Trial trial = TryFilter(0); trial.passed()) {
    filter.state = ProbeState::kOk;
  } else {
    filter.detail = trial.Text();
    filter.fix = "boot a kernel with CONFIG_SECCOMP_FILTER=y, or loosen the filter over this process";
  }

  Probe kill{.name = "seccomp kill",
             .group = ProbeGroup::kFilters,
             .purpose = "calls of a foreign architecture end the whole process"};
  if (const Trial trial = TryKill(); trial.end == Trial::End::kKilled && trial.signal == SIGSYS) {
    kill.state = ProbeState::kOk;
  } else {
    kill.detail = trial.Text();
    kill.fix = "boot Linux 4.14 or newer";
  }

  Probe tsync{.name = "seccomp tsync",
              .group = ProbeGroup::kFilters,
              .purpose = "a filter can be put over all threads of a program at once"};
  if (const Trial trial = TryFilter(SECCOMP_FILTER_FLAG_TSYNC); trial.passed()) {
    tsync.state = ProbeState::kOk;
  } else {
    tsync.detail = trial.Text();
  }
  return {filter, kill, tsync, ProbeNotification()};
}

}  // namespace belljar::doctor
