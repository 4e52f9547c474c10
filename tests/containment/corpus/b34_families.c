// Families of sockets beyond those that programs need: each is a protocol implementation inside the kernel. They are
// only made, never bound or connected.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "knock.h"

static enum outcome make(struct attempt* attempt, int family, int type, int protocol) {
  if (socket(family, type | SOCK_CLOEXEC, protocol) >= 0) return worked(attempt, "a socket");
  const int missing = errno == EAFNOSUPPORT || errno == EPROTONOSUPPORT || errno == ESOCKTNOSUPPORT || errno == EINVAL;
  if (missing && !attempt->stage->inside) return unable(attempt, "not in this kernel");
  return refused(attempt, "socket");
}

#define FAMILY(identifier, id, name, tries, guards, family, type, protocol) \
  static enum outcome run_##identifier(struct attempt* attempt) {           \
    seek_power();                                                           \
    return make(attempt, family, type, protocol);                           \
  }                                                                         \
  ATTACK(identifier, id, name, tries, guards, 0)

// For root alone, so that a user's own user and network namespace is the way there for everybody else.
#define POWERFUL(identifier, id, name, tries, family, type, protocol) \
  static enum outcome run_##identifier(struct attempt* attempt) {     \
    own_network();                                                    \
    return make(attempt, family, type, protocol);                     \
  }                                                                   \
  ATTACK(identifier, id, name, tries, "seccomp", NEEDS_POWER)

static void own_network(void) {
  seek_power();
  syscall(SYS_unshare, 0x40000000 /* CLONE_NEWNET */);
}

POWERFUL(b34_packet, "B34a", "packet-socket", "read all packets of the network", AF_PACKET, SOCK_RAW, 0);
POWERFUL(b34_raw, "B34b", "raw-socket", "send packets made by hand", AF_INET, SOCK_RAW, 255);
POWERFUL(b34_raw6, "B34c", "raw6-socket", "send IPv6 packets made by hand", AF_INET6, SOCK_RAW, 58);
FAMILY(b34_vsock, "B34d", "vsock", "a socket to the hypervisor; only made", "seccomp", 40, SOCK_STREAM, 0);
FAMILY(b34_alg, "B34e", "alg-socket", "the kernel's cryptography", "seccomp", 38, SOCK_SEQPACKET, 0);
POWERFUL(b34_key, "B34f", "key-socket", "keys of IPsec", 15, SOCK_RAW, 2);
POWERFUL(b34_xdp, "B34g", "xdp-socket", "packets past the network stack", 44, SOCK_RAW, 0);
FAMILY(b34_tipc, "B34h", "tipc-socket", "cluster messages", "seccomp", 30, SOCK_RDM, 0);
FAMILY(b34_rds, "B34i", "rds-socket", "reliable datagrams", "seccomp", 21, SOCK_SEQPACKET, 0);
FAMILY(b34_smc, "B34j", "smc-socket", "shared-memory connections", "seccomp", 43, SOCK_STREAM, 0);
FAMILY(b34_kcm, "B34k", "kcm-socket", "messages over TCP", "seccomp", 41, SOCK_DGRAM, 0);
FAMILY(b34_bluetooth, "B34l", "bluetooth-socket", "bluetooth", "seccomp", 31, SOCK_SEQPACKET, 0);
FAMILY(b34_can, "B34m", "can-socket", "the bus of vehicles", "seccomp", 29, SOCK_RAW, 1);
