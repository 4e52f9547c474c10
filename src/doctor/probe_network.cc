#include "doctor/probe_network.h"

#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "doctor/probe_child.h"
#include "doctor/probe_userns.h"

namespace belljar::doctor {
namespace {

// The first rule on a host makes the kernel load modules, which takes a while on a slow one.
constexpr std::chrono::milliseconds kModuleTimeout{8000};

Finding BringLoopbackUp() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Finding::Failed("socket");
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  return ::ioctl(fd, SIOCSIFFLAGS, &request) == 0 ? Finding::Passed() : Finding::Failed("bring lo up");
}

/// One netlink batch in a fixed buffer: child-side code has no heap.
class Batch {
 public:
  Batch() { Marker(NFNL_MSG_BATCH_BEGIN); }

  void Begin(int message, int flags) {
    head_ = size_;
    nlmsghdr header{.nlmsg_type = static_cast<std::uint16_t>(message),
                    .nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags),
                    .nlmsg_seq = ++sequence_};
    Put(&header, sizeof header);
    const nfgenmsg family{.nfgen_family = NFPROTO_IPV4, .version = NFNETLINK_V0};
    Put(&family, sizeof family);
  }
  void End() { PatchLength(head_, static_cast<std::uint32_t>(size_ - head_)); }

  void Text(int type, const char* text) { Attribute(type, text, std::strlen(text) + 1); }
  void Number(int type, std::uint32_t value) {
    value = htonl(value);
    Attribute(type, &value, sizeof value);
  }
  std::size_t Open(int type) {
    const std::size_t at = size_;
    Attribute(type | NLA_F_NESTED, nullptr, 0);
    return at;
  }
  void Close(std::size_t at) {
    const auto length = static_cast<std::uint16_t>(size_ - at);
    std::memcpy(bytes_ + at, &length, sizeof length);
  }

  void Finish() { Marker(NFNL_MSG_BATCH_END); }
  const char* data() const { return bytes_; }
  std::size_t size() const { return size_; }
  unsigned requests() const { return sequence_; }

 private:
  void Marker(int message) {
    head_ = size_;
    const nlmsghdr header{.nlmsg_type = static_cast<std::uint16_t>(message), .nlmsg_flags = NLM_F_REQUEST};
    Put(&header, sizeof header);
    const nfgenmsg subsystem{.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};
    Put(&subsystem, sizeof subsystem);
    End();
  }
  void Attribute(int type, const void* data, std::size_t size) {
    const nlattr header{.nla_len = static_cast<std::uint16_t>(NLA_HDRLEN + size),
                        .nla_type = static_cast<std::uint16_t>(type)};
    Put(&header, sizeof header);
    if (size > 0) Put(data, size);
  }
  void Put(const void* data, std::size_t size) {
    if (size_ + size + 4 > sizeof bytes_) return;  // can't happen with the one fixed batch below
    std::memcpy(bytes_ + size_, data, size);
    size_ = (size_ + size + 3) & ~std::size_t{3};
  }
  void PatchLength(std::size_t at, std::uint32_t length) { std::memcpy(bytes_ + at, &length, sizeof length); }

  alignas(8) char bytes_[1024] = {};
  std::size_t size_ = 0;
  std::size_t head_ = 0;
  std::uint32_t sequence_ = 0;
};

constexpr int NfTables(int message) { return NFNL_SUBSYS_NFTABLES << 8 | message; }

// "table ip belljar { chain out { type nat hook output priority -100; redirect; } }": what the egress broker needs.
void DescribeRedirect(Batch* batch) {
  batch->Begin(NfTables(NFT_MSG_NEWTABLE), NLM_F_CREATE);
  batch->Text(NFTA_TABLE_NAME, "belljar");
  batch->End();

  batch->Begin(NfTables(NFT_MSG_NEWCHAIN), NLM_F_CREATE);
  batch->Text(NFTA_CHAIN_TABLE, "belljar");
  batch->Text(NFTA_CHAIN_NAME, "out");
  const std::size_t hook = batch->Open(NFTA_CHAIN_HOOK);
  batch->Number(NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
  batch->Number(NFTA_HOOK_PRIORITY, static_cast<std::uint32_t>(-100));
  batch->Close(hook);
  batch->Text(NFTA_CHAIN_TYPE, "nat");
  batch->End();

  batch->Begin(NfTables(NFT_MSG_NEWRULE), NLM_F_CREATE | NLM_F_APPEND);
  batch->Text(NFTA_RULE_TABLE, "belljar");
  batch->Text(NFTA_RULE_CHAIN, "out");
  const std::size_t list = batch->Open(NFTA_RULE_EXPRESSIONS);
  const std::size_t element = batch->Open(NFTA_LIST_ELEM);
  batch->Text(NFTA_EXPR_NAME, "redir");
  batch->Close(batch->Open(NFTA_EXPR_DATA));
  batch->Close(element);
  batch->Close(list);
  batch->End();
  batch->Finish();
}

// Each request is answered by its own acknowledgement; the sequence number tells which one failed.
Finding ReadAnswers(int fd, unsigned expected) {
  constexpr const char* kSteps[] = {"nf_tables batch", "add a table", "add a nat chain", "add a redirect rule"};
  alignas(nlmsghdr) char buffer[8192];
  for (unsigned seen = 0; seen < expected;) {
    pollfd ready{.fd = fd, .events = POLLIN};
    if (::poll(&ready, 1, static_cast<int>(kModuleTimeout.count())) != 1)
      return Finding::Failed("wait for nf_tables", ETIMEDOUT);
    const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    if (got < 0) return Finding::Failed("hear from nf_tables");
    std::size_t at = 0;
    while (at + NLMSG_HDRLEN + sizeof(int) <= static_cast<std::size_t>(got)) {
      nlmsghdr header;
      std::memcpy(&header, buffer + at, sizeof header);
      int error = 0;
      std::memcpy(&error, buffer + at + NLMSG_HDRLEN, sizeof error);
      if (header.nlmsg_type == NLMSG_ERROR && error != 0) {
        return Finding::Failed(header.nlmsg_seq <= 3 ? kSteps[header.nlmsg_seq] : kSteps[0], -error);
      }
      if (header.nlmsg_type == NLMSG_ERROR) ++seen;
      if (header.nlmsg_len < NLMSG_HDRLEN) break;
      at += NLMSG_ALIGN(header.nlmsg_len);
    }
  }
  return Finding::Passed();
}

Finding AddRedirect() {
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
  if (fd < 0) return Finding::Failed("netfilter socket");
  Batch batch;
  DescribeRedirect(&batch);
  if (::send(fd, batch.data(), batch.size(), 0) < 0) return Finding::Failed("speak to nf_tables");
  return ReadAnswers(fd, batch.requests());
}

}  // namespace

Probes ProbeNetwork(Way way) {
  Probe loopback{.name = "loopback",
                 .group = ProbeGroup::kNetwork,
                 .purpose = "programs inside can speak to themselves",
                 .detail = kNeedsUserNamespace};
  Probe nftables{.name = "nftables",
                 .group = ProbeGroup::kNetwork,
                 .purpose = "connections of programs that know no proxy can be led to the egress broker",
                 .detail = loopback.detail};
  if (way == Way::kNone) return {loopback, nftables};
  const Trial up = TryInNamespaces(way, CLONE_NEWNET, BringLoopbackUp);
  loopback.state = up.passed() ? ProbeState::kOk : ProbeState::kMissing;
  loopback.detail = up.Text();

  const Trial redirect = TryInNamespaces(way, CLONE_NEWNET, AddRedirect, kModuleTimeout);
  nftables.state = redirect.passed() ? ProbeState::kOk : ProbeState::kMissing;
  nftables.detail = redirect.passed() ? "table, nat chain and redirect rule accepted in a namespace" : redirect.Text();
  if (!redirect.passed()) nftables.fix = "as root: modprobe -a nf_tables nft_chain_nat nft_redir";
  return {loopback, nftables};
}

}  // namespace belljar::doctor
