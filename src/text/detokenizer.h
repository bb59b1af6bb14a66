// SPDX-License-Identifier: Apache-2.0
// Ids to text while they come.
#ifndef BELAY_TEXT_DETOKENIZER_H_
#define BELAY_TEXT_DETOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace belay::text {

// Bytes to valid UTF-8 in pieces. What comes out joined equals the whole input
// with each maximal subpart of an ill-formed sequence replaced by U+FFFD.
class Utf8Stream {
 public:
  // The text that is certain now. Holds back at most 3 bytes: those of a
  // character that may still be completed.
  std::string Append(std::string_view bytes);

  // U+FFFD when a character was left incomplete, else nothing. Starts anew.
  std::string Finish();

  // True when bytes are held back.
  bool pending() const { return !held_.empty(); }

 private:
  std::string held_;
};

// One stream of ids. All results joined, Finish() included, equal
// Tokenizer::Decode of all ids, however they are cut.
class StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer,
                         DecodeOptions options = {})
      : tokenizer_(std::move(tokenizer)), options_(options) {}

  // The text that `id` completes; often "" inside a character.
  std::string Append(int32_t id);

  // What was held back, as U+FFFD. The decoder can then be used again.
  std::string Finish();

  bool pending() const { return stream_.pending(); }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  DecodeOptions options_;
  Utf8Stream stream_;
};

}  // namespace belay::text

#endif  // BELAY_TEXT_DETOKENIZER_H_
