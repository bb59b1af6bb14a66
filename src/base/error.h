// SPDX-License-Identifier: Apache-2.0
// Errors as values. A status carries a catalogue id; its texts are data
// (data/catalogue), so that doctor, logs, server and command line agree.
#ifndef BELAY_BASE_ERROR_H_
#define BELAY_BASE_ERROR_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace belay {

using absl::Status;
using absl::StatusOr;

// One catalogue entry as code sees it. `id` is "AREA-NNN"; the constants are in
// base/error_ids.h, and a test holds each against data/catalogue.
struct ErrorId {
  const char* id;
  absl::StatusCode code;
};

// The facts of one error. All fields are language neutral (paths, names,
// numbers); the sentence around them comes from the catalogue.
struct ErrorFacts {
  std::string where;     // file, tensor, option or operator; "" = unknown
  std::string what;      // a short detail that the title does not say; optional
  std::string expected;  // optional
  std::string got;       // optional
};

// Returns a status with code `id.code`, the message
// "ID where: what, expected X, got Y", and id and facts as payload.
Status MakeError(const ErrorId& id, ErrorFacts facts);

// The catalogue id of a status made by MakeError, or "" (also for OK).
std::string ErrorIdOf(const Status& status);

// The facts of a status made by MakeError; for any other status `what` holds
// its message.
ErrorFacts ErrorFactsOf(const Status& status);

// Puts `where` in front of the place that the error already names
// ("model.safetensors: layers.0..."); id, code and other facts stay.
Status WithContext(const Status& status, std::string_view where);

}  // namespace belay

// Returns from the enclosing function when `expr` is an error.
#define BELAY_RETURN_IF_ERROR(expr)         \
  do {                                      \
    ::belay::Status belay_status_ = (expr); \
    if (!belay_status_.ok()) [[unlikely]]   \
      return belay_status_;                 \
  } while (false)

#define BELAY_CONCAT_INNER(a, b) a##b
#define BELAY_CONCAT(a, b) BELAY_CONCAT_INNER(a, b)

// BELAY_ASSIGN_OR_RETURN(auto x, MakeX()): assigns, or returns the error.
// NOLINTBEGIN(bugprone-macro-parentheses): lhs may be a declaration.
#define BELAY_ASSIGN_OR_RETURN(lhs, expr) \
  BELAY_ASSIGN_OR_RETURN_IMPL(BELAY_CONCAT(belay_or_, __LINE__), lhs, expr)
#define BELAY_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                \
  if (!tmp.ok()) [[unlikely]]                       \
    return std::move(tmp).status();                 \
  lhs = std::move(tmp).value()
// NOLINTEND(bugprone-macro-parentheses)
// For our own bugs only, never for input: prints the place and aborts.
#define BELAY_CHECK(cond)                                        \
  do {                                                           \
    if (!(cond)) [[unlikely]]                                    \
      ::belay::internal::CheckFailed(#cond, __FILE__, __LINE__); \
  } while (false)

namespace belay::internal {
[[noreturn]] void CheckFailed(const char* cond, const char* file, int line);
}  // namespace belay::internal

#endif  // BELAY_BASE_ERROR_H_
