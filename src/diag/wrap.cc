// SPDX-License-Identifier: Apache-2.0
#include "diag/wrap.h"

#include <algorithm>
#include <cstdint>

namespace belay::diag {
namespace {

struct Glyph {
  std::string_view bytes;
  char32_t code;
};

// The character at the start of `text`. A byte that is not UTF-8 counts as one
// character.
Glyph FirstGlyph(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  const size_t n_bytes = lead < 0xc0   ? 1
                         : lead < 0xe0 ? 2
                         : lead < 0xf0 ? 3
                                       : 4;
  if (n_bytes == 1 || text.size() < n_bytes) return {text.substr(0, 1), lead};
  char32_t code = lead & (0xffu >> (n_bytes + 1));
  for (size_t i = 1; i < n_bytes; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    if ((next & 0xc0) != 0x80) return {text.substr(0, 1), lead};
    code = (code << 6) | (next & 0x3fu);
  }
  return {text.substr(0, n_bytes), code};
}

// East Asian Width W and F (Unicode UAX 11), as far as our texts need it.
bool IsWide(char32_t c) {
  return (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
         (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
         (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
         (c >= 0xffe0 && c <= 0xffe6) || (c >= 0x20000 && c <= 0x3fffd);
}

bool IsOneOf(char32_t c, std::u32string_view set) {
  return set.find(c) != std::u32string_view::npos;
}
bool IsClosing(char32_t c) { return IsOneOf(c, U"，。；：、！？）」』》”’%"); }
bool IsOpening(char32_t c) { return IsOneOf(c, U"（「『《“‘"); }

// What is never broken: a word, or a Chinese character with the punctuation
// that belongs to it.
struct Piece {
  std::string text;
  int width = 0;
  bool space_before = false;
};

std::vector<Piece> PiecesOf(std::string_view text) {
  std::vector<Piece> pieces;
  char32_t last = U' ';
  bool space = false;
  while (!text.empty()) {
    const Glyph glyph = FirstGlyph(text);
    text.remove_prefix(glyph.bytes.size());
    if (glyph.code == U' ') {
      space = true;
      continue;
    }
    const bool may_break =
        space || ((IsWide(glyph.code) || IsWide(last)) &&
                  !IsClosing(glyph.code) && !IsOpening(last));
    if (pieces.empty() || may_break) {
      pieces.push_back({"", 0, space && !pieces.empty()});
    }
    pieces.back().text += glyph.bytes;
    pieces.back().width += IsWide(glyph.code) ? 2 : 1;
    last = glyph.code;
    space = false;
  }
  return pieces;
}

void WrapParagraph(std::string_view text, int width,
                   std::vector<std::string>& lines) {
  std::string line;
  int used = 0;
  for (const Piece& piece : PiecesOf(text)) {
    const int space = piece.space_before ? 1 : 0;
    if (used > 0 && used + space + piece.width > width) {
      lines.push_back(std::move(line));
      line.clear();
      used = 0;
    }
    if (used > 0 && space > 0) {
      line += ' ';
      ++used;
    }
    line += piece.text;
    used += piece.width;
  }
  lines.push_back(std::move(line));
}

}  // namespace

std::vector<std::string> WrapLines(std::string_view text, int width) {
  std::vector<std::string> lines;
  while (true) {
    const size_t end = text.find('\n');
    WrapParagraph(text.substr(0, end), width, lines);
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

int DisplayWidth(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const Glyph glyph = FirstGlyph(text);
    width += IsWide(glyph.code) ? 2 : 1;
    text.remove_prefix(glyph.bytes.size());
  }
  return width;
}

}  // namespace belay::diag
