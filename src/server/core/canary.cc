// SPDX-License-Identifier: Apache-2.0
#include "server/core/canary.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error_ids.h"
#include "text/chat/tokens.h"

namespace belay::server {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int32_t kAnswerTokens = 48;
constexpr size_t kMinLoop = 24;
constexpr size_t kMaxPeriod = 4;
// Short prompts one by one, then both sides of a compressor block (4), of the
// window and a cache page (128).
constexpr int32_t kLengths[] = {1, 2, 3, 4, 5, 8, 127, 128, 129};
constexpr char kQuestion[] = "Count from one to ten in words, then stop.";

struct Probe {
  Tokens tokens;
  bool failed = false;  // no finite logit
};

class Canary {
 public:
  Canary(engine::Engine& engine, const ModelInfo& info,
         const std::function<bool()>& stopped)
      : engine_(engine), info_(info), stopped_(stopped) {}

  // Runs the requests together and returns their answers in order.
  StatusOr<std::vector<Probe>> Run(std::vector<engine::Request> requests) {
    std::vector<Probe> probes(requests.size());
    std::map<engine::RequestId, size_t> places;
    for (size_t i = 0; i < requests.size(); ++i) {
      BELAY_ASSIGN_OR_RETURN(const auto id,
                             engine_.Submit(std::move(requests[i])));
      places[id] = i;
    }
    while (engine_.HasWork()) {
      if (stopped_()) {
        for (const auto& [id, place] : places) engine_.Cancel(id);
      }
      BELAY_ASSIGN_OR_RETURN(const auto events, engine_.Step());
      for (const engine::Event& event : events) {
        const auto found = places.find(event.request);
        if (found == places.end()) continue;
        Probe& probe = probes[found->second];
        if (event.token >= 0) probe.tokens.push_back(event.token);
        probe.failed |= event.finish == engine::FinishReason::kError;
      }
    }
    return probes;
  }

  engine::Request Question(float temperature) const {
    engine::Request request;
    text::ChatRequest chat;
    text::ChatMessage message;
    message.role = text::Role::kUser;
    message.blocks.push_back({text::ContentBlock::Kind::kText, kQuestion, ""});
    chat.messages.push_back(std::move(message));
    const auto prompt = text::RenderChat(chat, info_.revision);
    if (prompt.ok()) {
      const auto ids = info_.tokenizer->Encode(*prompt);
      if (ids.ok()) request.prompt = *ids;
    }
    Fit(request);
    request.max_tokens = Limit(kAnswerTokens);
    request.sampling.temperature = temperature;
    request.sampling.seed = 20260101;
    request.stop_ids = info_.eos_ids;
    // A prefix in the cache would hide what computing it again gives.
    request.cache_salt = NextSalt();
    return request;
  }

  engine::Request OfLength(int32_t n_tokens) const {
    engine::Request request;
    const int32_t vocab =
        std::min(info_.vocab_size, info_.tokenizer->vocab_size());
    for (int32_t i = 0; i < n_tokens; ++i) {
      request.prompt.push_back((i * 7919 + 17) % std::max(vocab, 1));
    }
    Fit(request);
    request.max_tokens = Limit(2);
    request.cache_salt = NextSalt();
    return request;
  }

 private:
  uint64_t NextSalt() const { return 0xca9a4a0000000000u + salt_++; }
  int32_t Limit(int32_t n_tokens) const {
    return static_cast<int32_t>(
        std::clamp<int64_t>(info_.max_context / 2, 1, n_tokens));
  }
  // Half of a very small context is left for the answer.
  void Fit(engine::Request& request) const {
    const auto n_max = static_cast<size_t>(std::max<int64_t>(
        1,
        std::min<int64_t>(info_.max_context - 1, info_.max_context / 2 + 1)));
    if (request.prompt.size() > n_max) request.prompt.resize(n_max);
    if (request.prompt.empty()) request.prompt.push_back(0);
  }

  engine::Engine& engine_;
  const ModelInfo& info_;
  const std::function<bool()>& stopped_;
  mutable uint64_t salt_ = 0;
};

Status Finding(const ErrorId& id, std::string what, std::string expected,
               std::string got) {
  return MakeError(id, {.where = "canary",
                        .what = std::move(what),
                        .expected = std::move(expected),
                        .got = std::move(got)});
}

std::string Shown(const Tokens& tokens) {
  std::string text;
  for (size_t i = 0; i < tokens.size() && i < 12; ++i) {
    text += (i == 0 ? "" : ",") + std::to_string(tokens[i]);
  }
  return text + (tokens.size() > 12 ? ",..." : "");
}

Status Finite(Canary& canary) {
  for (const int32_t n_tokens : kLengths) {
    BELAY_ASSIGN_OR_RETURN(const auto probes,
                           canary.Run({canary.OfLength(n_tokens)}));
    if (probes[0].failed) {
      return Finding(kSrvCanaryNotFinite, "", "finite logits",
                     "none after " + std::to_string(n_tokens) + " tokens");
    }
  }
  return absl::OkStatus();
}

Status Repeatable(Canary& canary, Tokens* answer) {
  for (const float temperature : {0.0f, 1.0f}) {
    Tokens first;
    for (int round = 0; round < 2; ++round) {
      BELAY_ASSIGN_OR_RETURN(const auto probes,
                             canary.Run({canary.Question(temperature)}));
      if (probes[0].failed) {
        return Finding(kSrvCanaryNotFinite, "", "finite logits",
                       "none in the answer");
      }
      if (round == 0) {
        first = probes[0].tokens;
      } else if (probes[0].tokens != first) {
        return Finding(kSrvCanaryNotRepeatable,
                       temperature > 0 ? "sampled, same seed" : "greedy",
                       Shown(first), Shown(probes[0].tokens));
      }
    }
    if (temperature == 0) *answer = first;
  }
  return absl::OkStatus();
}

// The same question between neighbours of other lengths.
Status InCompany(Canary& canary, const Tokens& alone) {
  std::vector<engine::Request> requests;
  requests.push_back(canary.OfLength(5));
  requests.push_back(canary.Question(0));
  requests.push_back(canary.OfLength(129));
  requests.push_back(canary.Question(0));
  BELAY_ASSIGN_OR_RETURN(const auto probes, canary.Run(std::move(requests)));
  for (const size_t place : {1, 3}) {
    if (probes[place].tokens == alone) continue;
    return Finding(kSrvCanaryBatch, "", Shown(alone),
                   Shown(probes[place].tokens));
  }
  return absl::OkStatus();
}

Status Repetition(const Tokens& answer) {
  if (!IsLoop(answer)) return absl::OkStatus();
  const size_t n_last = std::min<size_t>(answer.size(), 8);
  return Finding(kSrvCanaryRepetition, "", "",
                 Shown({answer.end() - static_cast<std::ptrdiff_t>(n_last),
                        answer.end()}));
}

// Special tokens that do not belong into an answer. Reasoning marks and DSML
// may come.
Status Markers(const ModelInfo& info, const Tokens& answer) {
  for (const int32_t token : answer) {
    const bool is_eos = std::find(info.eos_ids.begin(), info.eos_ids.end(),
                                  token) != info.eos_ids.end();
    if (is_eos || !info.tokenizer->IsSpecial(token)) continue;
    const std::string text(info.tokenizer->BytesOf(token));
    if (text == text::kThinkBegin || text == text::kThinkEnd ||
        text == text::kDsml) {
      continue;
    }
    return Finding(kSrvCanaryMarkers, "", "", text);
  }
  return absl::OkStatus();
}

}  // namespace

bool IsLoop(const std::vector<int32_t>& tokens) {
  for (size_t period = 1; period <= kMaxPeriod; ++period) {
    if (tokens.size() < kMinLoop + period) continue;
    bool is_loop = true;
    for (size_t i = tokens.size() - kMinLoop; i < tokens.size(); ++i) {
      is_loop &= tokens[i] == tokens[i - period];
    }
    if (is_loop) return true;
  }
  return false;
}

std::vector<CanaryFinding> RunCanary(
    engine::Engine& engine, const ModelInfo& info,
    const std::function<void(const std::string&)>& on_stage,
    const std::function<bool()>& stopped) {
  Canary canary(engine, info, stopped);
  std::vector<CanaryFinding> findings;
  Tokens answer;
  const auto stage = [&](const char* name, bool is_warning,
                         const std::function<Status()>& run) {
    // What comes after a failure would only repeat it.
    const bool is_over = !findings.empty() && !findings.back().status.ok() &&
                         !findings.back().is_warning;
    if (is_over || stopped()) return;
    on_stage(name);
    findings.push_back({name, run(), is_warning});
  };
  stage("finite", false, [&] { return Finite(canary); });
  stage("repeatable", false, [&] { return Repeatable(canary, &answer); });
  stage("batch", false, [&] { return InCompany(canary, answer); });
  stage("repetition", true, [&] { return Repetition(answer); });
  stage("markers", true, [&] { return Markers(info, answer); });
  return findings;
}

}  // namespace belay::server
