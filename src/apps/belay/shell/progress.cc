// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/shell/progress.h"

#include <chrono>
#include <utility>

namespace belay::apps {
namespace {

double SecondsNow() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Progress::Progress(const Context& context) : Progress(context, SecondsNow) {}

Progress::Progress(const Context& context, Clock clock)
    : context_(context),
      clock_(std::move(clock)),
      interval_s_(context.err_is_tty ? 0.1 : 5.0),
      next_s_(clock_() + interval_s_) {}

Progress::~Progress() { Clear(); }

void Progress::Update(std::string_view text) {
  const double now_s = clock_();
  if (now_s < next_s_) return;
  next_s_ = now_s + interval_s_;
  if (context_.err_is_tty) {
    context_.err << "\r\x1b[K" << text << std::flush;  // K: to the line's end
    line_is_shown_ = true;
  } else {
    context_.err << text << "\n" << std::flush;
  }
}

void Progress::Clear() {
  if (!line_is_shown_) return;
  context_.err << "\r\x1b[K" << std::flush;
  line_is_shown_ = false;
}

}  // namespace belay::apps
