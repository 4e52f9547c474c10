#include "sys/host_facts.h"

#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>

#include "sys/files.h"
#include "sys/mount_table.h"
#include "sys/process.h"

namespace belljar::sys {
namespace {

bool HoldsSetupCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  for (const int capability : {CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID, CAP_SETPCAP, CAP_NET_ADMIN, CAP_DAC_OVERRIDE,
                               CAP_CHOWN, CAP_FOWNER, CAP_MKNOD}) {
    if ((data[capability / 32].effective & (1U << (capability % 32))) == 0) return false;
  }
  return true;
}

// Root of a user namespace, as in a rootless container, has all capabilities over what belongs to that namespace, but
// no ids to give to guests and no devices to make. It takes the way of a user. Where nobody can tell, root is root:
// what it can't do then fails by itself.
bool HasAllIds() {
  const auto map = ReadSmallFile("/proc/self/uid_map", 4096);
  return !map || Split(*map, ' ') == std::vector<std::string>{"0", "0", "4294967295\n"};
}

}  // namespace

HostFacts ReadHostFacts() {
  HostFacts facts;
  facts.uid = ::geteuid();
  facts.gid = ::getegid();
  facts.privileged = HoldsSetupCapabilities() && HasAllIds();
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  facts.landlock_abi = abi > 0 ? static_cast<int>(abi) : 0;
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) facts.cpus = CPU_COUNT(&allowed);
  utsname name{};
  if (::uname(&name) == 0) {
    facts.release = name.release;
    facts.kernel = std::string(name.sysname) + " " + name.release + " " + name.machine;
  }
  facts.cgroups = FindCgroups();
  facts.clone_into_cgroup = HasClone3();
  struct statvfs sysctls{};
  facts.read_only_sysctls = ::statvfs("/proc/sys", &sysctls) == 0 && (sysctls.f_flag & ST_RDONLY) != 0;
  facts.mount_setattr = ::mount_setattr(-1, "", 0, nullptr, 0) == 0 || errno != ENOSYS;
  return facts;
}

}  // namespace belljar::sys
