// SPDX-License-Identifier: Apache-2.0
// The alphabet of byte-level BPE: tokenizer.json spells each byte as one
// printable character (GPT-2's table: 0x21-0x7E, 0xA1-0xAC, 0xAE-0xFF stand for
// themselves, the other 68 bytes are U+0100, U+0101, ... in order).
#ifndef BELAY_TEXT_BPE_BYTE_LEVEL_H_
#define BELAY_TEXT_BPE_BYTE_LEVEL_H_

#include <string>
#include <string_view>

namespace belay::text {

// Appends the bytes that the piece spells ("Ġa" -> " a"). False, and nothing
// appended, when a character is not of the alphabet.
bool AppendBytesOfPiece(std::string_view piece, std::string* bytes);

// The inverse: the spelling of any bytes.
std::string PieceOfBytes(std::string_view bytes);

}  // namespace belay::text

#endif  // BELAY_TEXT_BPE_BYTE_LEVEL_H_
