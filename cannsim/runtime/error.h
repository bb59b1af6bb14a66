// SPDX-License-Identifier: Apache-2.0
// Errors of the C interface: a number for the caller, a sentence in the
// thread's message (aclGetRecentErrMsg), and which call of the program it was.
#ifndef BELAY_CANNSIM_RUNTIME_ERROR_H_
#define BELAY_CANNSIM_RUNTIME_ERROR_H_

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

namespace cannsim {

// One call of the program into the C interface.
struct Call {
  const char* api = "";          // a literal
  const void* caller = nullptr;  // return address
  uint64_t number = 0;           // of all calls of the process, from 1
};

// Makes the call the thread's current one while it lives. Calls nest when a
// callback calls back.
class CallScope {
 public:
  CallScope(const char* api, const void* caller);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  Call before_;
};

#define CANNSIM_CALL(api) \
  const ::cannsim::CallScope call_scope(#api, __builtin_return_address(0))

const Call& CurrentCall();

// Whether this thread runs a task of a stream: what fails in one is logged by
// its stream. Returns the state before.
bool SetInTask(bool in_task);

// "prog(main+0x1f)" or "prog+0x1f": where a call came from, for humans and
// for addr2line.
std::string PlaceOf(const void* caller);

// Remembers `text` as the thread's message and `code` as its last error;
// returns `code`.
int Fail(int code, const std::string& text);

template <typename... Args>
int Fail(int code, fmt::format_string<Args...> format, Args&&... args) {
  return Fail(code, fmt::format(format, std::forward<Args>(args)...));
}

// A finding of the strict mode: one line or more on stderr.
void Complain(const std::string& text);

// The thread's message; empties it. The pointer lives until the next call in
// this thread.
const char* TakeMessage();

// Remembers a message of another module ("EI0006"), logs nothing and leaves the
// last error alone.
void Say(const char* letters, int code, const std::string& text);

int PeekLastError();
int TakeLastError();

// The letters and digits that CANN's error manager puts in front of a message
// of this number ("EE1001").
const char* LetterCode(int code);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_ERROR_H_
