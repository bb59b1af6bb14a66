// SPDX-License-Identifier: Apache-2.0
// Text <-> token ids, equal to the Hugging Face Rust tokenizer on byte-level
// BPE tokenizers of DeepSeek's form (docs/tokenizer.md says exactly which).
#ifndef BELAY_TEXT_TOKENIZER_H_
#define BELAY_TEXT_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace belay::text {

struct TokenizerFile;

// One entry of "added_tokens": text that is taken out before the rest is
// split. The flags are those of the file.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;      // left out by DecodeOptions::skip_special
  bool lstrip = false;       // swallows white space on its left
  bool rstrip = false;       // swallows white space on its right
  bool single_word = false;  // only where no word character touches it
  bool normalized = false;   // looked for after the others
};

// A tokenizer as lists, from a file other than tokenizer.json. The texts are
// borrowed for the call.
struct TokenizerLists {
  struct Piece {
    int32_t id = 0;
    std::string_view text;  // in byte-level spelling ("Ġthe")
  };
  struct Merge {
    std::string_view left;
    std::string_view right;
  };
  std::vector<Piece> pieces;  // without the added tokens
  std::vector<Merge> merges;  // best first
  std::vector<AddedToken> added_tokens;
};

struct EncodeOptions {
  // false: text that spells a special token is encoded as plain text; for text
  // of untrusted users. Added tokens that are not special are found anyway.
  bool parse_special = true;
};

struct DecodeOptions {
  bool skip_special = false;  // leave special tokens out
};

// Immutable after loading: any number of threads may use one tokenizer.
class Tokenizer {
 public:
  // Reads `path`, a tokenizer.json or a folder that holds one.
  // Errors: SYS-001 (unreadable), TOK-001 (not JSON), TOK-002 (a field is
  // missing or wrong), TOK-003 (a feature that is not supported), TOK-004
  // (vocabulary and merges contradict), TOK-005 (a pattern cannot be used).
  static StatusOr<std::shared_ptr<const Tokenizer>> Open(
      const std::string& path);

  // The same for the text of a tokenizer.json; `where` names it in errors.
  static StatusOr<std::shared_ptr<const Tokenizer>> FromJson(
      std::string_view json, std::string_view where = "tokenizer.json");

  // The same from lists, with the splitting that DeepSeek's tokenizers use
  // since V3. Errors: TOK-004.
  static StatusOr<std::shared_ptr<const Tokenizer>> FromLists(
      TokenizerLists lists, std::string_view where);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // The ids of `text`; nothing (no BOS) is added. Bytes that are not UTF-8 are
  // read as U+FFFD, one for each maximal subpart, as Rust and the WHATWG do.
  // Time grows as n log n at most.
  // Errors: TOK-006 (a pattern other than DeepSeek's hit its match limit),
  // TOK-007 (2 GiB or more).
  StatusOr<std::vector<int32_t>> Encode(std::string_view text,
                                        EncodeOptions options = {}) const;

  // The text of `ids`: their bytes joined, then what is not UTF-8 replaced by
  // U+FFFD. Ids that the tokenizer does not know give nothing (models have
  // more rows than tokens); see Contains().
  std::string Decode(std::span<const int32_t> ids,
                     DecodeOptions options = {}) const;

  bool Contains(int32_t id) const;
  bool IsSpecial(int32_t id) const;

  // The bytes that `id` stands for, possibly a part of a character; empty for
  // an unknown id. Valid as long as the tokenizer.
  std::string_view BytesOf(int32_t id) const;

  // The spelling in tokenizer.json ("Ġthe"), or nothing for an unknown id.
  std::optional<std::string> PieceOf(int32_t id) const;

  // The id of a piece in that spelling, added tokens included.
  std::optional<int32_t> IdOf(std::string_view piece) const;

  // The highest id + 1; ids below may be unused.
  int32_t vocab_size() const;

  std::span<const AddedToken> added_tokens() const;

 private:
  struct Impl;
  static StatusOr<std::shared_ptr<const Tokenizer>> Make(
      TokenizerFile file, std::string_view where);
  explicit Tokenizer(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace belay::text

#endif  // BELAY_TEXT_TOKENIZER_H_
