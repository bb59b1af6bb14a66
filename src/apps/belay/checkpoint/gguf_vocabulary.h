// SPDX-License-Identifier: Apache-2.0
// tokenizer.json -> the lists that GGUF files hold.
#ifndef BELAY_APPS_BELAY_CHECKPOINT_GGUF_VOCABULARY_H_
#define BELAY_APPS_BELAY_CHECKPOINT_GGUF_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/gguf/writer.h"

namespace belay::apps {

struct GgufVocabulary {
  std::vector<std::string> tokens;  // [vocab_size]; empty: no tokenizer.json
  std::vector<int32_t> types;
  std::vector<std::string> merges;  // "left right"
};

// From folder/tokenizer.json, or nothing when there is none. Ids that it does
// not use become unused tokens. Errors: TOK-* (a tokenizer that Belay cannot
// read), GGUF-005 (an id beyond vocab_size).
StatusOr<GgufVocabulary> ReadVocabulary(const std::string& folder,
                                        int64_t vocab_size);

// tokenizer.ggml.*; without a tokenizer the model "none".
void AddVocabulary(const GgufVocabulary& vocabulary, int32_t bos, int32_t eos,
                   checkpoint::gguf::HeaderBuilder& header);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_CHECKPOINT_GGUF_VOCABULARY_H_
