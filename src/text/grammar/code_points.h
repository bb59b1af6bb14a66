// SPDX-License-Identifier: Apache-2.0
// Sets of characters, and how they look as bytes.
#ifndef BELAY_TEXT_GRAMMAR_CODE_POINTS_H_
#define BELAY_TEXT_GRAMMAR_CODE_POINTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "text/grammar/grammar.h"

namespace belay::text {

inline constexpr uint32_t kLastCodePoint = 0x10ffff;

// The bar in every marker with which a text could become a call, an end or a
// role when it is read again ("<｜DSML｜...", "<｜User｜>"). No constrained
// text has it as it is: ordinary tokens can spell it, too.
inline constexpr uint32_t kMarkerBar = 0xff5c;

struct CodePointRange {
  uint32_t first = 0;
  uint32_t last = 0;
  friend bool operator==(const CodePointRange&,
                         const CodePointRange&) = default;
};

// Sorted, without overlaps or surrogates once Normalize() has run.
using CodePointSet = std::vector<CodePointRange>;

CodePointSet Normalize(CodePointSet set);
CodePointSet Complement(const CodePointSet& set);  // of a normalised set
CodePointSet AllCodePoints();

// How characters are written.
enum class TextForm {
  // As the inside of a JSON string: what must be escaped is escaped, in one
  // way (RFC 8259, section 7), and so is the bar of the chat encoding's markers
  // (U+FF5C); all else is UTF-8.
  kJsonString,
  kPlain,  // UTF-8
};

// Edges that take one character of a normalised set.
void AddCharacters(GrammarBuilder& builder, GrammarNode from,
                   const CodePointSet& set, TextForm form, GrammarNode to);

// A JSON text with each kMarkerBar as an escape: the same value.
std::string EscapeBars(std::string json);

// `text`, UTF-8, as it is written in that form.
std::string WrittenAs(std::string_view text, TextForm form);

// Any character of a JSON string in any way that RFC 8259 allows, pairs of
// surrogates included, but kMarkerBar only as an escape.
void AddAnyJsonCharacter(GrammarBuilder& builder, GrammarNode from,
                         GrammarNode to);

}  // namespace belay::text

#endif  // BELAY_TEXT_GRAMMAR_CODE_POINTS_H_
