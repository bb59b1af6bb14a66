// SPDX-License-Identifier: Apache-2.0
#include "toolkit/loadtest/exchange.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error_ids.h"
#include "toolkit/loadtest/text_check.h"

namespace belay::loadtest {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxErrorBody = 65536;

// A member of an object that may be something else, or not be there.
std::string TextAt(const Json& json, const char* name) {
  if (!json.is_object()) return "";
  const auto it = json.find(name);
  return it != json.end() && it->is_string() ? it->get<std::string>() : "";
}
int64_t NumberAt(const Json& json, const char* name) {
  if (!json.is_object()) return 0;
  const auto it = json.find(name);
  return it != json.end() && it->is_number_integer() ? it->get<int64_t>() : 0;
}
const Json& At(const Json& json, const char* name) {
  static const Json nothing;
  if (!json.is_object()) return nothing;
  const auto it = json.find(name);
  return it == json.end() ? nothing : *it;
}

}  // namespace

http::ClientRequest MakeRequest(const Plan& plan, const std::string& model,
                                const Prompt& prompt) {
  Json body;
  body["model"] = model;
  body["messages"] = Json::parse(prompt.messages, nullptr, false);
  body["max_tokens"] =
      prompt.max_tokens > 0 ? prompt.max_tokens : plan.max_tokens;
  body["temperature"] = plan.temperature;
  if (plan.ignore_eos) body["ignore_eos"] = true;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  http::ClientRequest request;
  request.method = "POST";
  request.path = "/v1/chat/completions";
  request.headers = {{"Content-Type", "application/json"}};
  if (!plan.api_key.empty()) {
    request.headers.emplace_back("Authorization", "Bearer " + plan.api_key);
  }
  request.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  request.timeout_s = plan.timeout_s;
  return request;
}

Exchange::Exchange(Sample sample, LevelClock clock, DoneFn done)
    : sample_(std::move(sample)),
      clock_(std::move(clock)),
      done_(std::move(done)) {}

http::ClientCallbacks Exchange::Callbacks() {
  auto self = shared_from_this();
  http::ClientCallbacks callbacks;
  callbacks.on_head = [self](int status, const http::Headers&) {
    self->sample_.status = status;
  };
  callbacks.on_data = [self](std::string_view bytes) { self->Data(bytes); };
  callbacks.on_done = [self](const Status& status) { self->Done(status); };
  return callbacks;
}

void Exchange::Data(std::string_view bytes) {
  if (sample_.status >= 400) {
    error_body_ += bytes.substr(
        0, kMaxErrorBody - std::min(kMaxErrorBody, error_body_.size()));
    return;
  }
  for (const std::string& data : sse_.Feed(bytes)) Event(data);
}

void Exchange::Event(const std::string& data) {
  if (data == "[DONE]") {
    has_end_ = true;
    return;
  }
  const Json json = Json::parse(data, nullptr, false);
  if (!json.is_object()) {
    malformed_ = true;
    return;
  }
  if (json.contains("error")) {
    sample_.error_id = TextAt(json["error"], "code");
    malformed_ = true;
    return;
  }
  const Json& usage = At(json, "usage");
  if (usage.is_object()) {
    sample_.n_prompt = NumberAt(usage, "prompt_tokens");
    sample_.n_completion = NumberAt(usage, "completion_tokens");
    sample_.n_cached =
        NumberAt(At(usage, "prompt_tokens_details"), "cached_tokens");
  }
  const Json& choices = At(json, "choices");
  if (!choices.is_array() || choices.empty()) return;
  const std::string finish = TextAt(choices[0], "finish_reason");
  if (!finish.empty()) sample_.finish = finish;
  const Json& delta = At(choices[0], "delta");
  Text(TextAt(delta, "reasoning_content"));
  Text(TextAt(delta, "content"));
}

void Exchange::Text(std::string_view text) {
  if (text.empty()) return;
  const double now_s = clock_();
  if (sample_.first_s < 0) {
    sample_.first_s = now_s;
  } else {
    sample_.gaps_s.push_back(static_cast<float>(now_s - last_s_));
  }
  last_s_ = now_s;
  sample_.text += text;
}

Outcome Exchange::OutcomeOf(const Status& status) const {
  if (!status.ok()) {
    const std::string id = ErrorIdOf(status);
    if (id == kHttpCancelled.id) return Outcome::kStopped;
    if (id == kHttpTimeout.id) return Outcome::kTimeout;
    if (sample_.status == 0) return Outcome::kNoConnection;
    return Outcome::kCut;
  }
  if (sample_.status >= 400) return Outcome::kRefused;
  if (malformed_) return Outcome::kMalformed;
  // Both ends must be there: the reason, and the end of the stream.
  if (!has_end_ || sample_.finish.empty()) return Outcome::kCut;
  return Outcome::kOk;
}

void Exchange::Done(const Status& status) {
  sample_.end_s = clock_();
  if (sample_.status >= 400) {
    const Json json = Json::parse(error_body_, nullptr, false);
    sample_.error_id = TextAt(At(json, "error"), "code");
  }
  sample_.outcome = OutcomeOf(status);
  if (sample_.ok()) {
    // A server that counts nothing: a piece is a token, about.
    if (sample_.n_completion == 0 && sample_.first_s >= 0) {
      sample_.n_completion = static_cast<int64_t>(sample_.gaps_s.size()) + 1;
    }
    sample_.fault = CheckText(sample_.text, sample_.n_completion);
  }
  done_(std::move(sample_));
}

}  // namespace belay::loadtest
