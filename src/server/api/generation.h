// SPDX-License-Identifier: Apache-2.0
// What chat and plain completions have in common: how tokens are drawn, when
// the answer ends, what is told about it.
#ifndef BELAY_SERVER_API_GENERATION_H_
#define BELAY_SERVER_API_GENERATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error_ids.h"
#include "engine/request.h"
#include "server/api/fields.h"

namespace belay::server {

inline constexpr int kMaxChoices = 16;
inline constexpr int kMaxPrompts = 64;  // of one /v1/completions request
inline constexpr size_t kMaxStops = 16;
inline constexpr size_t kMaxStopBytes = 1024;  // of one stop string
inline constexpr size_t kMaxBiases = 1024;

// Something that the answer should say about the request: API-030 (ignored
// because the official service ignores it in thinking mode), API-031 (unknown),
// API-032 (understood, but without effect here).
struct Note {
  ErrorId id;
  std::string param;
};

struct Generation {
  std::string model;                // "" = the one that is served
  engine::SamplingParams sampling;  // temperature 1 unless asked otherwise
  bool seed_given = false;          // else each request gets a fresh seed
  int32_t max_tokens = 0;           // 0 = what the context leaves
  std::vector<std::string> stop;
  bool ignore_eos = false;  // for load tests of a fixed length
  int n = 1;
  int32_t n_top_logprobs = -1;  // -1 = no log probabilities
  bool stream = false;
  bool include_usage = false;  // a last chunk with the usage
  int32_t priority = 0;
  std::string cache_salt;
  std::vector<Note> notes;
};

// Reads the fields that both kinds of requests share, all but log
// probabilities. Errors: in fields.status().
Generation ReadGeneration(Fields& fields);

// The model ignores these in thinking mode on the official service, and so does
// Belay, which then says so: temperature, top_p, presence_penalty and
// frequency_penalty. Source: api-docs.deepseek.com, "Thinking Mode".
void IgnoreInThinking(Generation& generation, const text::JsonValue& json);

// Notes for members that no reader has asked for.
void NoteUnknown(const Fields& fields, std::vector<Note>& notes);

}  // namespace belay::server

#endif  // BELAY_SERVER_API_GENERATION_H_
