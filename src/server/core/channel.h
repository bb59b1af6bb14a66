// SPDX-License-Identifier: Apache-2.0
// From the engine's thread to the connection that waits for the tokens.
#ifndef BELAY_SERVER_CORE_CHANNEL_H_
#define BELAY_SERVER_CORE_CHANNEL_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/environment.h"
#include "engine/request.h"

namespace belay::server {

// An engine's event with what it refers to copied.
struct TokenEvent {
  int choice = 0;
  int32_t token = -1;
  engine::FinishReason finish = engine::FinishReason::kNone;
  float logprob = 0;
  std::vector<engine::TokenLogprob> top = {};
  int32_t n_cached_tokens = 0;
  engine::Clock::time_point time = {};
  Status error = {};  // with finish == kError, when it is known
};

// Bounded by what it carries: never more events than the request may have
// tokens. A slow reader gets them in larger batches, and is woken once a batch.
class Channel {
 public:
  // `wake` is called on the engine's thread when events wait and the last Take
  // has seen all before them. It must be quick and hold no lock.
  explicit Channel(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Engine's thread. Wake() after the events of a step are all in.
  void Push(TokenEvent event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  void Wake() {
    {
      const std::lock_guard lock(mutex_);
      if (events_.empty() || std::exchange(is_woken_, true)) return;
    }
    wake_();
  }

  // Connection's side.
  std::vector<TokenEvent> Take() {
    const std::lock_guard lock(mutex_);
    is_woken_ = false;
    return std::exchange(events_, {});
  }

 private:
  const std::function<void()> wake_;
  std::mutex mutex_;
  std::vector<TokenEvent> events_;
  bool is_woken_ = false;
};

}  // namespace belay::server

#endif  // BELAY_SERVER_CORE_CHANNEL_H_
