// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace belay {
namespace {

constexpr char kIdUrl[] = "belay/id";
constexpr char kWhereUrl[] = "belay/where";
constexpr char kWhatUrl[] = "belay/what";
constexpr char kExpectedUrl[] = "belay/expected";
constexpr char kGotUrl[] = "belay/got";

std::string Payload(const Status& status, const char* url) {
  const auto cord = status.GetPayload(url);
  return cord.has_value() ? std::string(*cord) : std::string();
}

std::string Message(const char* id, const ErrorFacts& facts) {
  std::string text = id;
  if (!facts.where.empty()) {
    text += ' ';
    text += facts.where;
  }
  const char* separator = ": ";
  const auto add = [&](const char* label, const std::string& value) {
    if (value.empty()) return;
    text += separator;
    text += label;
    text += value;
    separator = ", ";
  };
  add("", facts.what);
  add("expected ", facts.expected);
  add("got ", facts.got);
  return text;
}

}  // namespace

Status MakeError(const ErrorId& id, ErrorFacts facts) {
  Status status(id.code, Message(id.id, facts));
  const auto set = [&](const char* url, std::string value) {
    if (!value.empty()) status.SetPayload(url, absl::Cord(std::move(value)));
  };
  set(kIdUrl, id.id);
  set(kWhereUrl, std::move(facts.where));
  set(kWhatUrl, std::move(facts.what));
  set(kExpectedUrl, std::move(facts.expected));
  set(kGotUrl, std::move(facts.got));
  return status;
}

std::string ErrorIdOf(const Status& status) { return Payload(status, kIdUrl); }

ErrorFacts ErrorFactsOf(const Status& status) {
  if (ErrorIdOf(status).empty()) {
    return {.where = "",
            .what = std::string(status.message()),
            .expected = "",
            .got = ""};
  }
  return {.where = Payload(status, kWhereUrl),
          .what = Payload(status, kWhatUrl),
          .expected = Payload(status, kExpectedUrl),
          .got = Payload(status, kGotUrl)};
}

Status WithContext(const Status& status, std::string_view where) {
  if (status.ok()) return status;
  const std::string id = ErrorIdOf(status);
  ErrorFacts facts = ErrorFactsOf(status);
  facts.where = facts.where.empty() ? std::string(where)
                                    : std::string(where) + ": " + facts.where;
  if (id.empty()) {
    return Status(status.code(), facts.where + ": " + facts.what);
  }
  return MakeError({id.c_str(), status.code()}, std::move(facts));
}

namespace internal {

void CheckFailed(const char* cond, const char* file, int line) {
  std::fprintf(stderr, "belay: internal error: %s:%d: %s\n", file, line, cond);
  std::abort();
}

}  // namespace internal
}  // namespace belay
