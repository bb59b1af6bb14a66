// SPDX-License-Identifier: Apache-2.0
// The few steps over UTF-8 that the chat code needs.
#ifndef BELAY_TEXT_CHAT_UTF8_H_
#define BELAY_TEXT_CHAT_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace belay::text {

// What stands at the front of some bytes.
struct Utf8Step {
  enum class Kind {
    kCharacter,   // one well-formed character
    kIllFormed,   // the maximal subpart of an ill-formed sequence
    kIncomplete,  // a character that the next bytes may complete
  };
  Kind kind;
  size_t n_bytes;  // at least 1
};

// Looks at the front of `bytes`, which must not be empty. Well-formed as in
// the Unicode standard, table 3-7: no surrogates, nothing overlong, nothing
// above U+10FFFF.
Utf8Step NextUtf8(std::string_view bytes);

// Offset of the first byte that is not part of a well-formed character (an
// incomplete one at the end counts), or npos.
size_t FindInvalidUtf8(std::string_view text);

// Appends one code point that is no surrogate and at most U+10FFFF.
void AppendUtf8(uint32_t code_point, std::string* out);

}  // namespace belay::text

#endif  // BELAY_TEXT_CHAT_UTF8_H_
