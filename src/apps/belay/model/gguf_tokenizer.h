// SPDX-License-Identifier: Apache-2.0
// The tokenizer that a GGUF file carries in its metadata.
#ifndef BELAY_APPS_BELAY_MODEL_GGUF_TOKENIZER_H_
#define BELAY_APPS_BELAY_MODEL_GGUF_TOKENIZER_H_

#include <memory>
#include <string>

#include "base/error.h"
#include "checkpoint/gguf/file.h"
#include "text/tokenizer.h"

namespace belay::apps {

// Whether a path that names a model is a GGUF file: a file, not a folder.
bool IsGguf(const std::string& path);

// From tokenizer.ggml.*: model "gpt2" with pre "joyai-llm" or "deepseek-v3",
// whose splitting is DeepSeek's. Control tokens (type 3) become special added
// tokens, user-defined ones (4) added tokens, unused ones (5) are left out.
// Errors: GGUF-005 (no tokenizer, or another kind), TOK-004.
StatusOr<std::shared_ptr<const text::Tokenizer>> GgufTokenizer(
    const checkpoint::gguf::Metadata& metadata, const std::string& where);

// The same for a file; errors also as checkpoint::gguf::OpenSet.
StatusOr<std::shared_ptr<const text::Tokenizer>> OpenGgufTokenizer(
    const std::string& path);

// The tokenizer of a model by its path: of a GGUF file, or tokenizer.json of a
// folder. Errors also as text::Tokenizer::Open.
StatusOr<std::shared_ptr<const text::Tokenizer>> OpenModelTokenizer(
    const std::string& path);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_MODEL_GGUF_TOKENIZER_H_
