// SPDX-License-Identifier: Apache-2.0
// A model as the server sees it: an engine and what turns text into tokens.
#ifndef BELAY_SERVER_CORE_MODEL_H_
#define BELAY_SERVER_CORE_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "server/core/grammar_constraint.h"
#include "text/chat/render.h"
#include "text/tokenizer.h"

namespace belay::server {

// What the I/O threads need to know; never changes once the model is there.
struct ModelInfo {
  std::string name;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  text::EncodingRevision revision = text::EncodingRevision::kInitial;
  std::vector<int32_t> eos_ids;  // that end a turn
  int32_t vocab_size = 0;        // of the model; >= the tokenizer's
  int64_t max_context = 0;
  int32_t n_slots = 1;
  int64_t created_unix_s = 0;
  // Of recent requests for structured output, over this vocabulary.
  std::shared_ptr<GrammarShelf> grammars = std::make_shared<GrammarShelf>();
  std::vector<std::pair<std::string, uint64_t>> memory_bytes;  // by kind
};

struct Model {
  std::shared_ptr<void> owner;  // of all that the engine runs on
  std::unique_ptr<engine::Engine> engine;
  ModelInfo info;

  Model() = default;
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;
  ~Model() { engine.reset(); }  // before its owner
};

// Loads the model; called once, on the engine's thread. `progress` may be
// called with a part of 1.
using Loader =
    std::function<StatusOr<Model>(const std::function<void(double)>& progress)>;

}  // namespace belay::server

#endif  // BELAY_SERVER_CORE_MODEL_H_
