// SPDX-License-Identifier: Apache-2.0
#include "toolkit/loadtest/prompts.h"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error_ids.h"
#include "base/random.h"

namespace belay::loadtest {
namespace {

using Json = nlohmann::json;

Status BadOption(std::string where, std::string expected,
                 std::string_view got) {
  return MakeError(kArgUsage, {.where = std::move(where),
                               .what = "",
                               .expected = std::move(expected),
                               .got = std::string(got)});
}

template <typename T>
bool ReadNumber(std::string_view text, T* value) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

Prompt UserPrompt(std::string_view text) {
  Prompt prompt;
  const Json messages = {{{"role", "user"}, {"content", std::string(text)}}};
  prompt.messages =
      messages.dump(-1, ' ', false, Json::error_handler_t::replace);
  return prompt;
}

}  // namespace

StatusOr<std::vector<Prompt>> ParsePrompts(std::string_view jsonl,
                                           const std::string& where) {
  std::vector<Prompt> prompts;
  int line_number = 0;
  for (std::string_view line : Split(jsonl, '\n')) {
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto bad = [&] {
      return MakeError(
          kLoadPrompts,
          {.where = where + ":" + std::to_string(line_number),
           .what = "",
           .expected = R"("text", {"prompt": "..."} or {"messages": [...]})",
           .got = std::string(line.substr(0, 60))});
    };
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_string()) {
      prompts.push_back(UserPrompt(json.get<std::string>()));
      continue;
    }
    if (!json.is_object()) return bad();
    const Json text = json.value("prompt", Json());
    const Json messages = json.value("messages", Json());
    const Json limit = json.value("max_tokens", Json(0));
    if (text.is_string() == messages.is_array() || !limit.is_number_integer() ||
        limit.get<int64_t>() < 0 || limit.get<int64_t>() > 1 << 30) {
      return bad();
    }
    Prompt prompt;
    if (text.is_string()) {
      prompt = UserPrompt(text.get<std::string>());
    } else {
      prompt.messages = messages.dump();
    }
    prompt.max_tokens = limit.get<int32_t>();
    prompts.push_back(std::move(prompt));
  }
  if (prompts.empty()) {
    return MakeError(kLoadPrompts, {.where = where,
                                    .what = "",
                                    .expected = "one prompt at least",
                                    .got = "none"});
  }
  return prompts;
}

StatusOr<Shape> ParseShape(std::string_view text) {
  Shape shape;
  const auto parts = Split(text, ':');
  if (parts.size() != 2 || !ReadNumber(parts[0], &shape.n_prompt) ||
      !ReadNumber(parts[1], &shape.n_answer) || shape.n_prompt < 1 ||
      shape.n_answer < 1 || shape.n_prompt > 1 << 21) {
    return BadOption("--shape", "PROMPT:ANSWER in tokens, as 512:128", text);
  }
  return shape;
}

std::vector<Prompt> MakePrompts(const Shape& shape, int n, uint64_t seed) {
  // One token each for most vocabularies.
  static constexpr std::array<std::string_view, 32> kWords = {
      "time", "year",  "people", "way",    "day",   "man",   "thing", "woman",
      "life", "child", "world",  "school", "state", "house", "part",  "place",
      "case", "week",  "work",   "night",  "point", "home",  "water", "room",
      "area", "money", "story",  "fact",   "month", "lot",   "right", "book"};
  std::vector<Prompt> prompts;
  uint64_t counter = 0;
  for (int i = 0; i < n; ++i) {
    std::string text = std::to_string(RandomBits(seed, counter++) % 100000);
    for (int32_t k = 1; k < shape.n_prompt; ++k) {
      text += ' ';
      text += kWords[RandomBits(seed, counter++) % kWords.size()];
    }
    prompts.push_back(UserPrompt(text));
    prompts.back().max_tokens = shape.n_answer;
  }
  return prompts;
}

std::vector<Prompt> DefaultPrompts() {
  std::vector<Prompt> prompts;
  for (const std::string_view text :
       {"Hello world", "What is a mixture of experts?",
        "Explain in two sentences how a prefix cache works.",
        "Write a short poem about a rope and a mountain.",
        "What does error 507034 mean?", "Name five prime numbers above 100.",
        "Translate to Chinese: the server is ready.",
        "List three reasons why a stream may end early."}) {
    prompts.push_back(UserPrompt(text));
  }
  return prompts;
}

StatusOr<std::vector<Level>> ParseConcurrency(std::string_view text) {
  std::vector<Level> levels;
  for (const std::string_view part : Split(text, ',')) {
    Level level;
    if (!ReadNumber(part, &level.concurrency) || level.concurrency < 1 ||
        level.concurrency > 100000) {
      return BadOption("--concurrency", "numbers from 1 on, as 1,4,16", text);
    }
    levels.push_back(level);
  }
  return levels;
}

StatusOr<Slo> ParseSlo(std::string_view text) {
  Slo slo;
  for (const std::string_view part : Split(text, ',')) {
    const size_t at = part.find('=');
    const std::string_view name = part.substr(0, at);
    double value = 0;
    bool ok = at != std::string_view::npos &&
              ReadNumber(part.substr(at + 1), &value) && value > 0;
    if (name == "ttft_ms") {
      slo.ttft_s = value / 1000;
    } else if (name == "tpot_ms") {
      slo.tpot_s = value / 1000;
    } else if (name == "e2e_ms") {
      slo.e2e_s = value / 1000;
    } else if (name == "share") {
      slo.share = value;
      ok = ok && value <= 1;
    } else {
      ok = false;
    }
    if (!ok) {
      return BadOption("--slo",
                       "ttft_ms=N, tpot_ms=N, e2e_ms=N, share=0.9, with commas",
                       text);
    }
  }
  return slo;
}

}  // namespace belay::loadtest
