// SPDX-License-Identifier: Apache-2.0
#include "server/api/generation.h"

#include <charconv>
#include <limits>
#include <utility>

namespace belay::server {
namespace {

using text::JsonValue;

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();

float Float(std::optional<double> value, float fallback) {
  return value ? static_cast<float>(*value) : fallback;
}

void ReadSampling(Fields& fields, Generation& out) {
  engine::SamplingParams& s = out.sampling;
  s.temperature = Float(fields.Number("temperature", 0, 2), 1);
  s.top_p = Float(fields.Number("top_p", 0, 1), 1);
  // OpenAI takes 0 and means the likeliest token.
  if (s.top_p <= 0) {
    s.top_p = 1;
    s.temperature = 0;
  }
  s.min_p = Float(fields.Number("min_p", 0, 1), 0);
  // -1 is what others call "off".
  const int64_t top_k = fields.Integer("top_k", -1, kMaxInt32).value_or(0);
  s.top_k = static_cast<int32_t>(top_k < 0 ? 0 : top_k);
  s.presence_penalty = Float(fields.Number("presence_penalty", -2, 2), 0);
  s.frequency_penalty = Float(fields.Number("frequency_penalty", -2, 2), 0);
  s.repetition_penalty =
      Float(fields.Number("repetition_penalty", 0.01, 100), 1);
  const auto seed = fields.Integer("seed", std::numeric_limits<int64_t>::min(),
                                   std::numeric_limits<int64_t>::max());
  out.seed_given = seed.has_value();
  s.seed = static_cast<uint64_t>(seed.value_or(0));
}

void ReadBias(Fields& fields, Generation& out) {
  const JsonValue* json = fields.Take("logit_bias");
  if (json == nullptr) return;
  if (!json->is_object() || json->members.size() > kMaxBiases) {
    return fields.Fail("logit_bias",
                       "an object of at most 1024 token ids and biases",
                       json->KindName());
  }
  for (const auto& [key, value] : json->members) {
    int32_t token = -1;
    const char* end = key.data() + key.size();
    const auto [stop, error] = std::from_chars(key.data(), end, token);
    const std::optional<double> bias = NumberOf(value);
    if (error != std::errc() || stop != end || token < 0) {
      return fields.Fail("logit_bias", "token ids as keys", key);
    }
    if (!bias || *bias < -100 || *bias > 100) {
      return fields.Fail("logit_bias." + key, "a number in [-100, 100]",
                         text::DumpJson(value));
    }
    out.sampling.logit_bias.emplace_back(token, static_cast<float>(*bias));
  }
}

void ReadStop(Fields& fields, Generation& out) {
  const JsonValue* json = fields.Take("stop");
  if (json == nullptr) return;
  const auto add = [&](const JsonValue& value) {
    const bool ok = value.is_string() && !value.text.empty() &&
                    value.text.size() <= kMaxStopBytes;
    if (!ok) {
      fields.Fail("stop", "strings of 1 to 1024 bytes", value.KindName());
      return;
    }
    out.stop.push_back(value.text);
  };
  if (!json->is_array()) return add(*json);
  if (json->items.size() > kMaxStops) {
    return fields.Fail("stop", "at most 16 strings",
                       std::to_string(json->items.size()));
  }
  for (const JsonValue& item : json->items) add(item);
}

void ReadMaxTokens(Fields& fields, Generation& out) {
  const auto old_name = fields.Integer("max_tokens", 1, kMaxInt32);
  const auto new_name = fields.Integer("max_completion_tokens", 1, kMaxInt32);
  // The newer name wins, as at OpenAI.
  const auto value = new_name ? new_name : old_name;
  if (value) out.max_tokens = static_cast<int32_t>(*value);
}

void ReadStream(Fields& fields, Generation& out) {
  out.stream = fields.Bool("stream").value_or(false);
  const JsonValue* json = fields.Take("stream_options");
  if (json == nullptr) return;
  Fields options(*json, "stream_options");
  out.include_usage = options.Bool("include_usage").value_or(false);
  options.Bool("include_obfuscation");
  if (!options.ok()) return fields.Fail(options.status());
  if (!out.stream) {
    fields.Fail("stream_options", "\"stream\": true", "no stream");
  }
}

// Fields of OpenAI's API that change nothing about the text.
void SkipHarmless(Fields& fields) {
  for (const char* name :
       {"user", "metadata", "service_tier", "prompt_cache_key",
        "safety_identifier", "prompt_cache_retention"}) {
    fields.Take(name);
  }
}

}  // namespace

Generation ReadGeneration(Fields& fields) {
  Generation out;
  out.model = fields.String("model").value_or("");
  ReadSampling(fields, out);
  ReadBias(fields, out);
  ReadStop(fields, out);
  ReadMaxTokens(fields, out);
  ReadStream(fields, out);
  out.n = static_cast<int>(fields.Integer("n", 1, kMaxChoices).value_or(1));
  out.ignore_eos = fields.Bool("ignore_eos").value_or(false);
  out.priority =
      static_cast<int32_t>(fields.Integer("priority", -100, 100).value_or(0));
  out.cache_salt = fields.String("cache_salt").value_or("");
  SkipHarmless(fields);
  for (const char* name : {"prediction", "store", "verbosity"}) {
    const JsonValue* json = fields.Take(name);
    if (json != nullptr && json->Truthy()) {
      out.notes.push_back({kApiNoEffect, name});
    }
  }
  return out;
}

void IgnoreInThinking(Generation& generation, const JsonValue& json) {
  engine::SamplingParams& s = generation.sampling;
  for (const char* name :
       {"temperature", "top_p", "presence_penalty", "frequency_penalty"}) {
    const JsonValue* value = json.Find(name);
    if (value != nullptr && !value->is_null()) {
      generation.notes.push_back({kApiIgnoredInThinking, name});
    }
  }
  s.temperature = 1;
  s.top_p = 1;
  s.presence_penalty = 0;
  s.frequency_penalty = 0;
}

void NoteUnknown(const Fields& fields, std::vector<Note>& notes) {
  constexpr size_t kMaxNotes = 32;
  for (std::string& name : fields.Unknown()) {
    if (notes.size() >= kMaxNotes) return;
    notes.push_back({kApiUnknownField, std::move(name)});
  }
}

}  // namespace belay::server
