// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/memory/touch.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <mutex>
#include <string>

#include "cannsim/runtime/process.h"

namespace cannsim {
namespace {

struct sigaction g_before_segv;
struct sigaction g_before_bus;

void Write(const std::string& text) {
  const char* at = text.data();
  size_t left = text.size();
  while (left > 0) {
    const ssize_t n = write(STDERR_FILENO, at, left);
    if (n <= 0) return;
    at += n;
    left -= static_cast<size_t>(n);
  }
}

// The process is about to die of a fault of its own: allocating here is a risk
// that a report is worth. The lock of the memory is only tried.
void Report(const siginfo_t* info) {
  const Process& process = Process::Get();
  const void* address = info->si_addr;
  const DeviceMemory* memory = process.MemoryOf(address);
  if (memory == nullptr) return;
  Write(fmt::format(
      "cannsim: SIM-010 the host touched device memory at {} (device {})\n{}",
      address, process.DeviceOf(address), memory->TryDescribe(address)));
}

void Handle(int signal, siginfo_t* info, void* context) {
  Report(info);
  const struct sigaction& before =
      signal == SIGBUS ? g_before_bus : g_before_segv;
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
    before.sa_sigaction(signal, info, context);
    return;
  }
  // Back to what was there; the instruction faults again and ends the process.
  sigaction(signal, &before, nullptr);
}

}  // namespace

void InstallTouchReporter() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = Handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &g_before_segv);
    sigaction(SIGBUS, &action, &g_before_bus);
  });
}

}  // namespace cannsim
