// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/shell/interrupt.h"

#include <csignal>

namespace belay::apps {
namespace {

// A signal handler gets no argument, so this is the one global of the program.
std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // safe in a handler

}  // namespace

const std::atomic<bool>& CatchInterrupts() {
  g_interrupted.store(false);
  struct sigaction action {};
  action.sa_handler = [](int) { g_interrupted.store(true); };
  // The handler is gone after one signal: the second has its default effect.
  // No restart, so that a blocking read returns and its command sees the flag.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return g_interrupted;
}

}  // namespace belay::apps
