// SPDX-License-Identifier: Apache-2.0
// tokenizer.json as data: read, checked for what we understand, not yet used.
#ifndef BELAY_TEXT_BPE_TOKENIZER_FILE_H_
#define BELAY_TEXT_BPE_TOKENIZER_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/tokenizer.h"

namespace belay::text {

// The texts of all entries lie in one buffer: a file has 250,000 of them.
class TextList {
 public:
  void Add(std::string_view text) {
    text_.append(text);
    ends_.push_back(text_.size());
  }
  void Reserve(size_t n_texts, size_t n_bytes) {
    ends_.reserve(n_texts);
    text_.reserve(n_bytes);
  }
  size_t size() const { return ends_.size(); }
  size_t n_bytes() const { return text_.size(); }
  std::string_view operator[](size_t i) const {
    const size_t start = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(start, ends_[i] - start);
  }

 private:
  std::string text_;
  std::vector<size_t> ends_;
};

struct TokenizerFile {
  TextList pieces;  // model.vocab, in the order of the file
  std::vector<int64_t> piece_ids;
  TextList merge_parts;  // two a merge: left, right
  std::vector<AddedToken> added_tokens;
  std::vector<std::string> split_patterns;
  bool ignore_merges = false;
};

// Errors: TOK-001, TOK-002, TOK-003 (each with the field and what it holds).
StatusOr<TokenizerFile> ParseTokenizerFile(std::string_view json,
                                           std::string_view where);

}  // namespace belay::text

#endif  // BELAY_TEXT_BPE_TOKENIZER_FILE_H_
