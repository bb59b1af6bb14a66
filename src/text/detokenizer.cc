// SPDX-License-Identifier: Apache-2.0
#include "text/detokenizer.h"

#include "text/split/unicode.h"

namespace belay::text {
namespace {

// The number of bytes at the end that may still become a character: at most 3.
size_t IncompleteTail(std::string_view bytes) {
  for (size_t n = 1; n <= 3 && n <= bytes.size(); ++n) {
    const std::string_view tail = bytes.substr(bytes.size() - n);
    if ((static_cast<uint8_t>(tail[0]) & 0xC0) == 0x80) continue;
    return NextUtf8(tail).kind == Utf8Step::kIncomplete ? n : 0;
  }
  return 0;
}

}  // namespace

std::string Utf8Stream::Append(std::string_view bytes) {
  held_.append(bytes);
  const size_t n_ready = held_.size() - IncompleteTail(held_);
  std::string text =
      ReplaceInvalidUtf8(std::string_view(held_).substr(0, n_ready));
  held_.erase(0, n_ready);
  return text;
}

std::string Utf8Stream::Finish() {
  std::string text = ReplaceInvalidUtf8(held_);
  held_.clear();
  return text;
}

std::string StreamDecoder::Append(int32_t id) {
  if (options_.skip_special && tokenizer_->IsSpecial(id)) return "";
  return stream_.Append(tokenizer_->BytesOf(id));
}

std::string StreamDecoder::Finish() { return stream_.Finish(); }

}  // namespace belay::text
