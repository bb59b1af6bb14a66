// SPDX-License-Identifier: Apache-2.0
// One answer on its way: from the engine's events to the client.
#ifndef BELAY_SERVER_ANSWER_SESSION_H_
#define BELAY_SERVER_ANSWER_SESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "server/answer/choice.h"
#include "server/answer/format.h"
#include "server/core/channel.h"
#include "server/core/exchange.h"
#include "server/core/runner.h"

namespace belay::server {

struct SessionParts {
  std::unique_ptr<Exchange> exchange;
  std::unique_ptr<AnswerFormat> format;
  std::vector<ChoiceOptions> choices;
  std::vector<engine::Request> requests;  // one a choice
  bool stream = false;
  int64_t n_prompt_tokens = 0;
  // Choices of one prompt stand together, so many of them.
  int n_per_prompt = 1;
};

// Lives on the executor of its connection, which keeps it as long as the answer
// is not complete.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // Submits the requests and sees the answer through, or fails it. Runner and
  // metrics outlive the session.
  static void Start(SessionParts parts, Runner* runner, Metrics* metrics);

  Session(SessionParts parts, Runner* runner, Metrics* metrics);

 private:
  using Clock = engine::Clock;

  void Submit();
  void Drain();
  void OnEvent(TokenEvent& event, std::string* sse);
  void Head();
  void Count(const TokenEvent& event);
  void Finish(std::string* sse);
  void FailWith(const Status& error, std::string* sse);
  void OnGone();
  Usage MakeUsage() const;
  void Report(const std::string& finish);

  SessionParts parts_;
  Runner* const runner_;
  Metrics* const metrics_;
  std::shared_ptr<Channel> channel_;
  std::vector<Choice> choices_;
  std::vector<std::vector<TokenInfo>> infos_;  // for a whole answer
  std::vector<bool> has_begun_;
  Runner::JobId job_ = 0;
  size_t n_ended_ = 0;
  int64_t n_cached_tokens_ = 0;
  bool has_head_ = false;
  bool is_over_ = false;
  Clock::time_point submitted_{};
  Clock::time_point first_{};
  Clock::time_point last_{};
};

}  // namespace belay::server

#endif  // BELAY_SERVER_ANSWER_SESSION_H_
