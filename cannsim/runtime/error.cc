// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/error.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>

#include "acl/error_codes.h"
#include "cannsim/runtime/log/log.h"
#include "cannsim/runtime/strict/races.h"

namespace cannsim {
namespace {

thread_local Call t_call;
thread_local std::string t_message;   // waits to be read
thread_local std::string t_returned;  // what the caller's pointer points to
thread_local int t_last_error = 0;
thread_local bool t_in_task = false;
std::atomic<uint64_t> g_n_calls{0};

std::string BaseName(const char* path) {
  const std::string text = path;
  return text.substr(text.rfind('/') + 1);
}

std::string Demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

// The module that logs a number of this kind.
void LogFailure(int code, const std::string& text) {
  const std::string first = text.substr(0, text.find('\n'));
  // Phase 1 of an operator says in the text who it is.
  const char* api = t_call.api[0] == '\0' ? "aclnn" : t_call.api;
  const int kind = code / 1000;
  if (kind == 161 || kind == 361 || kind == 561) {
    Log(LogLevel::kError, "OP", api, fmt::format("errno[{}] {}", code, first));
    return;
  }
  // Clients that start twice are told so and go on.
  const LogLevel level = code == ACL_ERROR_REPEAT_INITIALIZE
                             ? LogLevel::kWarning
                             : LogLevel::kError;
  Log(level, "ASCENDCL", api,
      fmt::format("{}, runtime result = {}", first, code));
}

}  // namespace

CallScope::CallScope(const char* api, const void* caller) : before_(t_call) {
  t_call = {.api = api,
            .caller = caller,
            .number = g_n_calls.fetch_add(1, std::memory_order_relaxed) + 1};
  if (before_.api[0] == '\0') Races::Forget();
  if (Logs(LogLevel::kDebug, "ASCENDCL")) {
    Log(LogLevel::kDebug, "ASCENDCL", api,
        fmt::format("called from {}", PlaceOf(caller)));
  }
}

CallScope::~CallScope() { t_call = before_; }

const Call& CurrentCall() { return t_call; }

bool SetInTask(bool in_task) { return std::exchange(t_in_task, in_task); }

std::string PlaceOf(const void* caller) {
  Dl_info info{};
  if (caller == nullptr || dladdr(caller, &info) == 0) return "?";
  const auto address = reinterpret_cast<uintptr_t>(caller);
  const std::string file = BaseName(info.dli_fname);
  if (info.dli_sname != nullptr) {
    return fmt::format("{}({}+{:#x})", file, Demangled(info.dli_sname),
                       address - reinterpret_cast<uintptr_t>(info.dli_saddr));
  }
  return fmt::format("{}+{:#x}", file,
                     address - reinterpret_cast<uintptr_t>(info.dli_fbase));
}

void Say(const char* letters, int code, const std::string& text) {
  t_message = fmt::format("{}: [PID: {}] {} {} (error {}): {}\n", letters,
                          getpid(), LogTime(), t_call.api, code, text);
  if (t_call.caller != nullptr) {
    t_message += fmt::format("        Called from {}, call {} of the process\n",
                             PlaceOf(t_call.caller), t_call.number);
  }
}

int Fail(int code, const std::string& text) {
  t_last_error = code;
  Say(LetterCode(code), code, text);
  if (!t_in_task || t_call.api[0] != '\0') LogFailure(code, text);
  return code;
}

void Complain(const std::string& text) {
  const std::string line = "cannsim: " + text + "\n";
  // One call: lines of several threads stay whole. stderr may be closed.
  [[maybe_unused]] const ssize_t n =
      write(STDERR_FILENO, line.data(), line.size());
}

const char* TakeMessage() {
  t_returned = std::move(t_message);
  t_message.clear();
  return t_returned.c_str();
}

int PeekLastError() { return t_last_error; }

int TakeLastError() { return std::exchange(t_last_error, ACL_SUCCESS); }

const char* LetterCode(int code) {
  switch (code) {
    case ACL_ERROR_RT_MEMORY_ALLOCATION:
    case ACL_ERROR_RT_DEVICE_OOM:
      return "EL0004";
    case ACL_ERROR_RT_NO_EVENT_RESOURCE:
      return "EL0008";
    case ACL_ERROR_RT_NO_STREAM_RESOURCE:
      return "EL0009";
    case ACL_ERROR_RT_STREAM_SYNC_TIMEOUT:
    case ACL_ERROR_RT_EVENT_SYNC_TIMEOUT:
      return "EE1002";
    case ACL_ERROR_RT_FEATURE_NOT_SUPPORT:
    case ACL_ERROR_API_NOT_SUPPORT:
      return "EL0014";
    default:
      break;
  }
  switch (code / 1000) {
    case 100:
    case 148:
      return "EH0001";
    case 107:
      return "EE1001";
    case 161:
      return "EZ1001";
    case 361:
      return "EZ9903";
    case 561:
      return "EZ9999";
    default:
      return "EE9999";
  }
}

}  // namespace cannsim
