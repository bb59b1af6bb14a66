// SPDX-License-Identifier: Apache-2.0
// One request of a load test: what is sent, and a sample of what comes back.
#ifndef BELAY_TOOLKIT_LOADTEST_EXCHANGE_H_
#define BELAY_TOOLKIT_LOADTEST_EXCHANGE_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "http/client.h"
#include "http/sse.h"
#include "toolkit/loadtest/plan.h"

namespace belay::loadtest {

// Seconds since the level began.
using LevelClock = std::function<double()>;

// A streamed request to /v1/chat/completions.
http::ClientRequest MakeRequest(const Plan& plan, const std::string& model,
                                const Prompt& prompt);

// Reads one stream into a sample; all calls on the client's thread.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  using DoneFn = std::function<void(Sample)>;

  Exchange(Sample sample, LevelClock clock, DoneFn done);

  // Callbacks that keep this object until the answer has ended.
  http::ClientCallbacks Callbacks();

 private:
  void Data(std::string_view bytes);
  void Event(const std::string& data);
  void Text(std::string_view text);
  void Done(const Status& status);
  Outcome OutcomeOf(const Status& status) const;

  Sample sample_;
  LevelClock clock_;
  DoneFn done_;
  http::SseParser sse_;
  std::string error_body_;
  double last_s_ = -1;    // the last piece of text
  bool has_end_ = false;  // [DONE]
  bool malformed_ = false;
};

}  // namespace belay::loadtest

#endif  // BELAY_TOOLKIT_LOADTEST_EXCHANGE_H_
