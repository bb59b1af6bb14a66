// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/memory/history.h"

namespace cannsim {
namespace {

std::string Line(const Call& call, const char* what) {
  return fmt::format("    call {}: {} by {} from {}\n", call.number, what,
                     call.api, PlaceOf(call.caller));
}

}  // namespace

void History::Note(const char* use) {
  const Use now{.call = CurrentCall(), .what = use};
  if (n_ == 0) first_ = now;
  last_[n_ % kKept] = now;
  ++n_;
}

std::string History::Text() const {
  if (n_ == 0) return "    no call is known\n";
  std::string text;
  if (n_ > kKept) {
    text += Line(first_.call, first_.what);
    if (n_ > kKept + 1) {
      text += fmt::format("    ... {} more calls ...\n", n_ - kKept - 1);
    }
  }
  const size_t begin = n_ > kKept ? n_ - kKept : 0;
  for (size_t i = begin; i < n_; ++i) {
    text += Line(last_[i % kKept].call, last_[i % kKept].what);
  }
  return text;
}

}  // namespace cannsim
