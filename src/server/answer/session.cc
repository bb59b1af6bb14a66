// SPDX-License-Identifier: Apache-2.0
#include "server/answer/session.h"

#include <utility>

#include "base/error_ids.h"
#include "http/sse.h"

namespace belay::server {
namespace {

double Seconds(engine::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

void Session::Start(SessionParts parts, Runner* runner, Metrics* metrics) {
  std::make_shared<Session>(std::move(parts), runner, metrics)->Submit();
}

Session::Session(SessionParts parts, Runner* runner, Metrics* metrics)
    : parts_(std::move(parts)),
      runner_(runner),
      metrics_(metrics),
      infos_(parts_.choices.size()),
      has_begun_(parts_.choices.size(), false) {
  for (ChoiceOptions& options : parts_.choices) {
    options.keep_text = !parts_.stream;
    choices_.emplace_back(std::move(options));
  }
}

void Session::Submit() {
  // The channel must not keep the session: the connection does, and lets go of
  // it when the answer is complete or the client is gone.
  channel_ = std::make_shared<Channel>([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->parts_.exchange->responder().Post([self] { self->Drain(); });
  });
  auto job = runner_->Submit(std::move(parts_.requests), channel_);
  if (!job.ok()) {
    is_over_ = true;
    parts_.exchange->Fail(job.status(), runner_->stats().retry_after_seconds);
    return;
  }
  job_ = *job;
  submitted_ = Clock::now();
  parts_.exchange->DropBody();
  parts_.exchange->responder().OnGone(
      [self = shared_from_this()] { self->OnGone(); });
}

void Session::Drain() {
  if (is_over_) return;
  std::string sse;
  for (TokenEvent& event : channel_->Take()) {
    OnEvent(event, &sse);
    if (is_over_) return;
  }
  if (n_ended_ == choices_.size()) return Finish(&sse);
  if (!sse.empty()) parts_.exchange->responder().Write(std::exchange(sse, {}));
}

void Session::Count(const TokenEvent& event) {
  if (event.choice % parts_.n_per_prompt == 0) {
    n_cached_tokens_ += event.n_cached_tokens;
  }
  if (event.token < 0) return;
  last_ = event.time;
  if (first_ != Clock::time_point{}) return;
  first_ = event.time;
  metrics_->ObserveOverhead(Seconds(submitted_ - parts_.exchange->arrival()) +
                            Seconds(Clock::now() - event.time));
}

void Session::OnEvent(TokenEvent& event, std::string* sse) {
  const auto index = static_cast<size_t>(event.choice);
  Choice& choice = choices_[index];
  if (!choice.finish().empty()) return;  // after its stop string
  Count(event);
  const std::vector<Piece> pieces = choice.Take(event);
  if (!choice.error().ok()) return FailWith(choice.error(), sse);
  std::vector<TokenInfo> infos = choice.TakeInfos();
  if (parts_.stream) {
    Head();
    if (!has_begun_[index]) {
      has_begun_[index] = true;
      parts_.format->Begin(event.choice, sse);
    }
    parts_.format->Add(event.choice, pieces, infos, sse);
  } else {
    auto& all = infos_[index];
    all.insert(all.end(), std::make_move_iterator(infos.begin()),
               std::make_move_iterator(infos.end()));
  }
  if (choice.finish().empty()) return;
  ++n_ended_;
  if (parts_.stream) parts_.format->End(event.choice, choice, sse);
  if (choice.stopped_by_string()) runner_->CancelChoice(job_, event.choice);
}

// Only now: until the engine has taken the request, it may still become an
// error with a status of its own.
void Session::Head() {
  if (std::exchange(has_head_, true)) return;
  parts_.exchange->BeginStream();
}

Usage Session::MakeUsage() const {
  Usage usage;
  usage.n_prompt_tokens = parts_.n_prompt_tokens;
  usage.n_cached_tokens = n_cached_tokens_;
  for (const Choice& choice : choices_) {
    usage.n_completion_tokens += choice.n_tokens();
    usage.n_reasoning_tokens += choice.n_reasoning_tokens();
  }
  const auto arrival = parts_.exchange->arrival();
  if (first_ != Clock::time_point{}) {
    usage.ttft_ms = 1000 * Seconds(first_ - arrival);
  }
  usage.latency_ms = 1000 * Seconds(Clock::now() - arrival);
  return usage;
}

void Session::Report(const std::string& finish) {
  const Usage usage = MakeUsage();
  AnswerTimes times;
  times.e2e_s = usage.latency_ms / 1000;
  times.n_prompt_tokens = usage.n_prompt_tokens;
  times.n_cached_tokens = usage.n_cached_tokens;
  times.n_completion_tokens = usage.n_completion_tokens;
  if (first_ != Clock::time_point{}) {
    times.ttft_s = usage.ttft_ms / 1000;
    const double per_choice = static_cast<double>(usage.n_completion_tokens) /
                              static_cast<double>(choices_.size());
    if (per_choice > 1) {
      times.tpot_s = Seconds(last_ - first_) / (per_choice - 1);
    }
  }
  metrics_->AddAnswer(times, finish);
}

void Session::Finish(std::string* sse) {
  is_over_ = true;
  const Usage usage = MakeUsage();
  Report(choices_[0].finish());
  if (parts_.stream) {
    parts_.format->Last(usage, sse);
    parts_.exchange->responder().Write(std::exchange(*sse, {}));
    parts_.exchange->responder().End();
    return;
  }
  std::vector<WholeChoice> whole;
  for (size_t i = 0; i < choices_.size(); ++i) {
    whole.push_back({&choices_[i], std::move(infos_[i])});
  }
  parts_.exchange->SendJson(parts_.format->Whole(whole, usage));
}

void Session::FailWith(const Status& error, std::string* sse) {
  is_over_ = true;
  runner_->Cancel(job_);
  Report("error");
  if (!has_head_) {
    parts_.exchange->Fail(error);
    return;
  }
  http::AppendSse(parts_.exchange->StreamError(error), sse);
  parts_.exchange->responder().Write(std::exchange(*sse, {}));
  parts_.exchange->responder().End();
}

void Session::OnGone() {
  if (std::exchange(is_over_, true)) return;
  runner_->Cancel(job_);
  metrics_->CountGone();
  Report("gone");
}

}  // namespace belay::server
