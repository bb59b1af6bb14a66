// SPDX-License-Identifier: Apache-2.0
#include "text/bpe/byte_level.h"

#include <array>
#include <cstdint>

namespace belay::text {
namespace {

constexpr int kAlphabetEnd = 0x100 + 68;  // all characters are below

constexpr bool IsItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         byte >= 0xAE;
}

struct Tables {
  std::array<uint16_t, 256> character_of{};     // byte -> code point
  std::array<int16_t, kAlphabetEnd> byte_of{};  // code point -> byte, or -1
};

constexpr Tables MakeTables() {
  Tables tables;
  for (int16_t& byte : tables.byte_of) byte = -1;
  uint16_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const uint16_t c = IsItself(byte) ? static_cast<uint16_t>(byte) : next++;
    tables.character_of[byte] = c;
    tables.byte_of[c] = static_cast<int16_t>(byte);
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

}  // namespace

bool AppendBytesOfPiece(std::string_view piece, std::string* bytes) {
  const size_t n_before = bytes->size();
  for (size_t i = 0; i < piece.size(); ++i) {
    uint32_t c = static_cast<uint8_t>(piece[i]);
    if (c >= 0x80) {
      // Two bytes reach U+07FF, far beyond the alphabet.
      const bool two = (c & 0xE0) == 0xC0 && i + 1 < piece.size();
      c = two ? (c & 0x1F) << 6 | (static_cast<uint8_t>(piece[++i]) & 0x3F)
              : kAlphabetEnd;
    }
    if (c >= kAlphabetEnd || kTables.byte_of[c] < 0) {
      bytes->resize(n_before);
      return false;
    }
    bytes->push_back(static_cast<char>(kTables.byte_of[c]));
  }
  return true;
}

std::string PieceOfBytes(std::string_view bytes) {
  std::string piece;
  piece.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    const uint16_t c = kTables.character_of[static_cast<uint8_t>(byte)];
    if (c < 0x80) {
      piece.push_back(static_cast<char>(c));
    } else {
      piece.push_back(static_cast<char>(0xC0 | c >> 6));
      piece.push_back(static_cast<char>(0x80 | (c & 0x3F)));
    }
  }
  return piece;
}

}  // namespace belay::text
