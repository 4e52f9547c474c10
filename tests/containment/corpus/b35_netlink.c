// Netlink beyond the questions about addresses that name resolution asks: each protocol configures a part of the
// kernel.
#define _GNU_SOURCE
#include <linux/netlink.h>
#include <sys/socket.h>

#include "knock.h"

static enum outcome make(struct attempt* attempt, int protocol) {
  if (socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol) >= 0) return worked(attempt, "a socket");
  if (errno == EPROTONOSUPPORT && !attempt->stage->inside) return unable(attempt, "not in this kernel");
  return refused(attempt, "socket");
}

#define NETLINK(identifier, id, name, tries, protocol)                                              \
  static enum outcome run_##identifier(struct attempt* attempt) { return make(attempt, protocol); } \
  ATTACK(identifier, id, name, tries, "seccomp", 0)

NETLINK(b35_netfilter, "B35a", "netlink-netfilter", "rules of the firewall", NETLINK_NETFILTER);
NETLINK(b35_xfrm, "B35b", "netlink-xfrm", "rules of IPsec", NETLINK_XFRM);
NETLINK(b35_sock_diag, "B35c", "netlink-sock-diag", "list sockets", NETLINK_SOCK_DIAG);
NETLINK(b35_audit, "B35d", "netlink-audit", "the host's audit log", NETLINK_AUDIT);
NETLINK(b35_uevent, "B35e", "netlink-uevent", "events of the host's devices", NETLINK_KOBJECT_UEVENT);
NETLINK(b35_generic, "B35f", "netlink-generic", "all other subsystems", NETLINK_GENERIC);
NETLINK(b35_connector, "B35g", "netlink-connector", "every fork and exec of the host", NETLINK_CONNECTOR);
NETLINK(b35_usersock, "B35h", "netlink-usersock", "messages between processes past all files", NETLINK_USERSOCK);
NETLINK(b35_crypto, "B35i", "netlink-crypto", "the kernel's algorithms", NETLINK_CRYPTO);
