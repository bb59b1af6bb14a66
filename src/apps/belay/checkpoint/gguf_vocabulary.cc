// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/checkpoint/gguf_vocabulary.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error_ids.h"
#include "base/file.h"
#include "text/tokenizer.h"

namespace belay::apps {
namespace {

// Token types, as llama.cpp numbers them.
constexpr int32_t kNormal = 1;
constexpr int32_t kControl = 3;
constexpr int32_t kUserDefined = 4;
constexpr int32_t kUnused = 5;

std::string MergeText(const nlohmann::json& merge) {
  if (merge.is_string()) return merge.get<std::string>();
  return merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>();
}

}  // namespace

StatusOr<GgufVocabulary> ReadVocabulary(const std::string& folder,
                                        int64_t vocab_size) {
  GgufVocabulary v;
  const std::string path =
      (std::filesystem::path(folder) / "tokenizer.json").string();
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return v;
  // Opened first: what it accepts has the form that is relied on below.
  BELAY_ASSIGN_OR_RETURN(const auto tokenizer, text::Tokenizer::Open(path));
  if (tokenizer->vocab_size() > vocab_size) {
    return MakeError(kGgufTokenizer,
                     {.where = path,
                      .what = "",
                      .expected = std::to_string(vocab_size),
                      .got = std::to_string(tokenizer->vocab_size())});
  }
  for (int64_t i = 0; i < vocab_size; ++i) {
    const auto piece = tokenizer->PieceOf(static_cast<int32_t>(i));
    v.tokens.push_back(piece.value_or("[PAD" + std::to_string(i) + "]"));
    v.types.push_back(piece.has_value() ? kNormal : kUnused);
  }
  for (const text::AddedToken& added : tokenizer->added_tokens()) {
    v.tokens[static_cast<size_t>(added.id)] = added.content;
    v.types[static_cast<size_t>(added.id)] =
        added.special ? kControl : kUserDefined;
  }
  BELAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  for (const auto& merge : json.at("model").at("merges")) {
    v.merges.push_back(MergeText(merge));
  }
  return v;
}

void AddVocabulary(const GgufVocabulary& v, int32_t bos, int32_t eos,
                   checkpoint::gguf::HeaderBuilder& header) {
  if (v.tokens.empty()) {
    header.AddText("tokenizer.ggml.model", "none");
    return;
  }
  header.AddText("tokenizer.ggml.model", "gpt2");
  header.AddText("tokenizer.ggml.pre", "joyai-llm");
  header.AddTexts("tokenizer.ggml.tokens", v.tokens);
  header.AddI32s("tokenizer.ggml.token_type", v.types);
  header.AddTexts("tokenizer.ggml.merges", v.merges);
  header.AddU32("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(bos));
  header.AddU32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(eos));
  header.AddU32("tokenizer.ggml.padding_token_id", static_cast<uint32_t>(eos));
  header.AddBool("tokenizer.ggml.add_bos_token", false);
  header.AddBool("tokenizer.ggml.add_eos_token", false);
}

}  // namespace belay::apps
