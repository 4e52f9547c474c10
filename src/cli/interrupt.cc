#include "cli/interrupt.h"

#include <csignal>

namespace belljar::cli {
namespace {

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
const CancelToken* g_cancel = nullptr;  // For the signal handler, which can be given nothing else.

void OnSignal(int) { g_cancel->Cancel(); }

}  // namespace

void CatchSignals(const CancelToken& token) {
  g_cancel = &token;
  struct sigaction action{};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  for (const int signal : kEndingSignals) {
    struct sigaction before{};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
}

void ReleaseSignals() {
  for (const int signal : kEndingSignals) {
    struct sigaction before{};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == OnSignal) ::signal(signal, SIG_DFL);
  }
}

}  // namespace belljar::cli
