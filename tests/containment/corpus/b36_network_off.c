// Ways to the host's network where the policy grants none. Nothing is sent but to this machine's own loopback.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "knock.h"

static struct sockaddr_in local(int port) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_port = htons((unsigned short)port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Nobody at the port is told to the sender as an error; where none comes, the datagram has arrived.
static enum outcome datagram(struct attempt* attempt, int protocol) {
  if (attempt->stage->udp_port == 0) return unable(attempt, "no host port to send to");
  const struct sockaddr_in address = local(attempt->stage->udp_port);
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, protocol);
  if (fd < 0) return refused(attempt, "socket");
  if (connect(fd, (const struct sockaddr*)&address, sizeof address) != 0 || send(fd, "belljar", 7, 0) != 7) {
    return refused(attempt, "send");
  }
  struct pollfd poller = {.fd = fd, .events = POLLIN};
  if (poll(&poller, 1, 100) > 0 && (poller.revents & POLLERR)) {
    char byte;
    if (recv(fd, &byte, 1, MSG_DONTWAIT) < 0) return refused(attempt, "nobody at the host's port");
  }
  return worked(attempt, "a datagram to the host's loopback");
}
static enum outcome run_b36_udp(struct attempt* attempt) { return datagram(attempt, 0); }
ATTACK(b36_udp, "B36a", "udp-to-host", "send a datagram to the host's loopback", "network", 0);

static enum outcome run_b36_mptcp(struct attempt* attempt) {
  if (attempt->stage->tcp_port == 0) return unable(attempt, "no host port to connect to");
  const struct sockaddr_in address = local(attempt->stage->tcp_port);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 262 /* IPPROTO_MPTCP */);
  if (fd < 0 && errno == EPROTONOSUPPORT && !attempt->stage->inside) return unable(attempt, "not in this kernel");
  if (fd < 0 || connect(fd, (const struct sockaddr*)&address, sizeof address) != 0) return refused(attempt, "MPTCP");
  return worked(attempt, "connected to the host by MPTCP");
}
ATTACK(b36_mptcp, "B36b", "mptcp-to-host", "connect to the host by MPTCP, past rules for TCP", "seccomp, network", 0);

static enum outcome make(struct attempt* attempt, int family, int type, int protocol) {
  if (socket(family, type | SOCK_CLOEXEC, protocol) >= 0) return worked(attempt, "a socket");
  const int missing = errno == EPROTONOSUPPORT || errno == ESOCKTNOSUPPORT;
  if (missing && !attempt->stage->inside) return unable(attempt, "not in this kernel");
  return refused(attempt, "socket");
}
static enum outcome run_b36_sctp(struct attempt* attempt) { return make(attempt, AF_INET, SOCK_STREAM, 132); }
ATTACK(b36_sctp, "B36c", "sctp", "a socket of SCTP", "seccomp", 0);
static enum outcome run_b36_udplite(struct attempt* attempt) { return make(attempt, AF_INET, SOCK_DGRAM, 136); }
ATTACK(b36_udplite, "B36d", "udplite", "a socket of UDP-Lite", "seccomp", 0);
static enum outcome run_b36_dccp(struct attempt* attempt) { return make(attempt, AF_INET, 6, 33); }
ATTACK(b36_dccp, "B36e", "dccp", "a socket of DCCP", "seccomp", 0);
static enum outcome run_b36_ping(struct attempt* attempt) { return make(attempt, AF_INET, SOCK_DGRAM, 1); }
ATTACK(b36_ping, "B36f", "ping-socket", "a socket of ICMP, open to users on many hosts", "seccomp", 0);

// Connecting a datagram socket sends nothing: it only asks the routing table. The address is one of documentation.
static enum outcome run_b36_route(struct attempt* attempt) {
  struct sockaddr_in address = local(9);
  address.sin_addr.s_addr = inet_addr("192.0.2.1");
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return refused(attempt, "socket");
  if (connect(fd, (const struct sockaddr*)&address, sizeof address) != 0) return refused(attempt, "no route");
  return worked(attempt, "a route to the world, and the host's address");
}
ATTACK(b36_route, "B36g", "route-out", "find a route out and the host's address", "network", 0);
