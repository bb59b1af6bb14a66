// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/model/gguf_tokenizer.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "base/error_ids.h"

namespace belay::apps {
namespace {

using checkpoint::gguf::Metadata;

// Token types, as llama.cpp numbers them.
constexpr int64_t kNormal = 1;
constexpr int64_t kControl = 3;
constexpr int64_t kUserDefined = 4;
constexpr int64_t kUnused = 5;

Status Refuse(const std::string& where, const std::string& key,
              std::string expected, std::string got) {
  return MakeError(kGgufTokenizer, {.where = where + ": tokenizer.ggml." + key,
                                    .what = "",
                                    .expected = std::move(expected),
                                    .got = std::move(got)});
}

Status RequireText(const Metadata& metadata, const std::string& where,
                   const std::string& key, std::string_view wanted,
                   std::string_view also) {
  const auto got = metadata.Text("tokenizer.ggml." + key);
  if (got == wanted || (!also.empty() && got == also)) return absl::OkStatus();
  std::string expected(wanted);
  if (!also.empty()) expected += " or " + std::string(also);
  return Refuse(where, key, std::move(expected),
                got.has_value() ? std::string(*got) : "none");
}

template <typename T>
StatusOr<const std::vector<T>*> List(const Metadata& metadata,
                                     const std::string& where,
                                     const std::string& key) {
  const auto* const value = metadata.Find("tokenizer.ggml." + key);
  const auto* const list =
      value == nullptr ? nullptr : std::get_if<std::vector<T>>(value);
  if (list == nullptr) return Refuse(where, key, "a list", "none");
  return list;
}

}  // namespace

bool IsGguf(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

StatusOr<std::shared_ptr<const text::Tokenizer>> GgufTokenizer(
    const Metadata& metadata, const std::string& where) {
  BELAY_RETURN_IF_ERROR(RequireText(metadata, where, "model", "gpt2", ""));
  BELAY_RETURN_IF_ERROR(
      RequireText(metadata, where, "pre", "joyai-llm", "deepseek-v3"));
  BELAY_ASSIGN_OR_RETURN(const auto* const tokens,
                         List<std::string_view>(metadata, where, "tokens"));
  BELAY_ASSIGN_OR_RETURN(const auto* const merges,
                         List<std::string_view>(metadata, where, "merges"));
  BELAY_ASSIGN_OR_RETURN(const auto* const types,
                         List<int64_t>(metadata, where, "token_type"));
  if (types->size() != tokens->size()) {
    return Refuse(where, "token_type", std::to_string(tokens->size()),
                  std::to_string(types->size()));
  }
  text::TokenizerLists lists;
  for (size_t i = 0; i < tokens->size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const int64_t type = (*types)[i];
    if (type == kNormal) {
      lists.pieces.push_back({id, (*tokens)[i]});
    } else if (type == kControl || type == kUserDefined) {
      lists.added_tokens.push_back({.id = id,
                                    .content = std::string((*tokens)[i]),
                                    .special = type == kControl});
    } else if (type != kUnused) {
      return Refuse(where, "token_type[" + std::to_string(i) + "]",
                    "1, 3, 4 or 5", std::to_string(type));
    }
  }
  for (const std::string_view merge : *merges) {
    // Pieces hold no space: theirs is spelled "Ġ".
    const size_t space = merge.find(' ');
    if (space == std::string_view::npos) {
      return Refuse(where, "merges", "two pieces", std::string(merge));
    }
    lists.merges.push_back({merge.substr(0, space), merge.substr(space + 1)});
  }
  return text::Tokenizer::FromLists(std::move(lists), where);
}

StatusOr<std::shared_ptr<const text::Tokenizer>> OpenGgufTokenizer(
    const std::string& path) {
  BELAY_ASSIGN_OR_RETURN(const auto set, checkpoint::gguf::OpenSet(path));
  return GgufTokenizer(set.metadata(), path);
}

StatusOr<std::shared_ptr<const text::Tokenizer>> OpenModelTokenizer(
    const std::string& path) {
  return IsGguf(path) ? OpenGgufTokenizer(path) : text::Tokenizer::Open(path);
}

}  // namespace belay::apps
