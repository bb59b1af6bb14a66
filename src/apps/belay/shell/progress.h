// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_APPS_BELAY_SHELL_PROGRESS_H_
#define BELAY_APPS_BELAY_SHELL_PROGRESS_H_

#include <functional>
#include <string_view>

#include "apps/belay/shell/context.h"

namespace belay::apps {

// Tells on stderr how far a long command is. On a terminal one line that is
// overwritten, at most ten times a second, and gone at the end; elsewhere (a
// log file) a line of its own every five seconds.
class Progress {
 public:
  using Clock = std::function<double()>;  // seconds, monotonic

  explicit Progress(const Context& context);
  Progress(const Context& context, Clock clock);  // for tests
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `text` is one line of plain text. Cheap when it is not yet time; the first
  // line comes one interval after the start, so that short work stays silent.
  void Update(std::string_view text);

  // Removes the line, so that other output can follow.
  void Clear();

 private:
  const Context& context_;
  Clock clock_;
  double interval_s_;
  double next_s_;
  bool line_is_shown_ = false;
};

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_SHELL_PROGRESS_H_
