#include "sys/socket_diag.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "sys/files.h"
#include "sys/proc_text.h"

namespace belljar::sys {
namespace {

constexpr unsigned kAllStates = ~0U;
// The last, TCP_BOUND_INACTIVE, is told by a list that the kernel begins anew for every few of them.
constexpr unsigned kNoMemory = 1U << TCP_LISTEN | 1U << TCP_TIME_WAIT | 1U << 13;

bool IsOrphan(const inet_diag_msg& socket) {
  if (socket.idiag_inode != 0) return false;
  switch (socket.idiag_state) {
    case TCP_FIN_WAIT1:
    case TCP_FIN_WAIT2:
    case TCP_CLOSING:
    case TCP_LAST_ACK: return true;
    default: return false;
  }
}

// Netlink's own macros cast; these copy. Takes a head of type T from the front of `bytes`: false when there is no whole
// one.
template <typename T>
bool Take(std::string_view& bytes, T& head) {
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes.remove_prefix(sizeof head);
  return true;
}

// The body of something of `length` bytes whose head is taken already; what follows it is aligned to four.
std::string_view TakeBody(std::string_view& bytes, std::size_t length, std::size_t head) {
  const std::string_view body = bytes.substr(0, length < head ? 0 : length - head);
  const std::size_t whole = (length + 3) / 4 * 4;
  bytes.remove_prefix(std::min(bytes.size(), whole < head ? bytes.size() : whole - head));
  return body;
}

void AddSocket(std::string_view bytes, TcpUse& use) {
  inet_diag_msg socket{};
  if (!Take(bytes, socket)) return;
  if (IsOrphan(socket)) ++use.orphans;
  for (rtattr attribute{}; Take(bytes, attribute);) {
    const std::string_view body = TakeBody(bytes, attribute.rta_len, sizeof attribute);
    if (attribute.rta_type != INET_DIAG_SKMEMINFO) continue;
    std::array<std::uint32_t, SK_MEMINFO_VARS> memory{};  // Older kernels tell fewer of them.
    std::memcpy(memory.data(), body.data(), std::min(sizeof memory, body.size()));
    for (const std::size_t part :
         {SK_MEMINFO_RMEM_ALLOC, SK_MEMINFO_WMEM_QUEUED, SK_MEMINFO_FWD_ALLOC, SK_MEMINFO_OPTMEM, SK_MEMINFO_BACKLOG}) {
      const auto signed_part = static_cast<std::int32_t>(memory[part]);  // What is reserved may be less than nothing.
      use.bytes += static_cast<std::uint64_t>(std::max(signed_part, 0));
    }
  }
}

enum class Reply : std::uint8_t { kMore, kDone, kFailed };

// Takes one of the many datagrams of an answer.
Reply TakeReply(int diag, TcpUse& use) {
  std::array<char, 32 * 1024> buffer;  // As large as the kernel makes them.
  const ssize_t got = ::recv(diag, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got <= 0) return Reply::kFailed;
  std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
  for (nlmsghdr message{}; Take(bytes, message);) {
    if (message.nlmsg_type == NLMSG_ERROR) return Reply::kFailed;
    if (message.nlmsg_type == NLMSG_DONE) return Reply::kDone;
    AddSocket(TakeBody(bytes, message.nlmsg_len, sizeof message), use);
  }
  return Reply::kMore;
}

bool LookAtFamily(int diag, unsigned char family, TcpUse& use) {
  struct {
    nlmsghdr head;
    inet_diag_req_v2 body;
  } question{};
  question.head = {.nlmsg_len = sizeof question,
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                   .nlmsg_seq = 0,
                   .nlmsg_pid = 0};
  question.body.sdiag_family = family;
  question.body.sdiag_protocol = IPPROTO_TCP;
  question.body.idiag_ext = 1U << (INET_DIAG_SKMEMINFO - 1);
  question.body.idiag_states = kAllStates & ~kNoMemory;
  if (::send(diag, &question, sizeof question, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return false;
  Reply reply = Reply::kMore;
  while (reply == Reply::kMore) reply = TakeReply(diag, use);
  return reply == Reply::kDone;
}

}  // namespace

std::optional<TcpUse> LookAtTcp(const base::UniqueFd& diag) {
  TcpUse use;
  if (!diag.valid() || !LookAtFamily(diag.get(), AF_INET, use)) return std::nullopt;
  // A host without IPv6 has no such sockets either.
  (void)LookAtFamily(diag.get(), AF_INET6, use);
  return use;
}

std::uint64_t MostTcpOrphans() {
  constexpr std::uint64_t kUsual = 8192;  // Not shown in network namespaces of some hosts.
  const auto text = ReadSmallFile("/proc/sys/net/ipv4/tcp_max_orphans", 64);
  const std::uint64_t most = text ? FirstNumber(*text) : 0;
  return most != 0 ? most : kUsual;
}

}  // namespace belljar::sys
