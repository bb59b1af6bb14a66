// SPDX-License-Identifier: Apache-2.0
// Reads the JSON of a tokenizer in one pass: the two long lists (model.vocab,
// model.merges) into flat buffers, the rest, which is small, into a DOM.
#ifndef BELAY_TEXT_BPE_TOKENIZER_SAX_H_
#define BELAY_TEXT_BPE_TOKENIZER_SAX_H_

#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"
#include "text/bpe/tokenizer_file.h"

namespace belay::text {

// The JSON type moves by assigning, which clang-tidy believes may throw.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct TokenizerJson {
  nlohmann::json rest;  // without the entries of model.vocab and model.merges
  TokenizerFile lists;  // only pieces, piece_ids and merge_parts are set
};

// TOK-001 when it is not JSON, TOK-002 when one of the lists has a wrong form.
StatusOr<TokenizerJson> ReadTokenizerJson(std::string_view json,
                                          std::string_view where);

}  // namespace belay::text

#endif  // BELAY_TEXT_BPE_TOKENIZER_SAX_H_
