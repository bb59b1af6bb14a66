// SPDX-License-Identifier: Apache-2.0
// Finds catalogue entries by what a person or a log has at hand: an id, a code
// (decimal, hexadecimal, negative, EI0006), a symbol, a variable, an operator,
// or words in English or Chinese.
#ifndef BELAY_DIAG_LOOKUP_H_
#define BELAY_DIAG_LOOKUP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diag/catalogue.h"

namespace belay::diag {

// How the first hit was found; the earlier, the surer.
enum class FoundBy : uint8_t {
  kNothing,
  kId,
  kCode,   // a code or a symbol
  kName,   // a variable, an operator, ...
  kTypo,   // an id, symbol or name that differs by a slip
  kWords,  // the words of the query, ranked
};

std::string_view NameOf(FoundBy by);  // "nothing", "id", "code", ...

struct Hit {
  const Entry* entry = nullptr;  // in the catalogue that was asked
  const Code* code = nullptr;    // which of its codes; null if by other means
};

struct Answer {
  FoundBy by = FoundBy::kNothing;
  std::vector<Hit> hits;  // the best first, each entry and code once
  // The first hit is so much better than the rest that it alone is meant.
  bool is_clear = false;
  std::vector<std::string>
      nearest;  // ids, codes and names, if nothing is found
};

// At most `limit` hits. Codes compare as numbers: 0x7bc9a is 507034, and the
// unsigned 32-bit form of a negative code is that code. A number that several
// components use finds all of them; a component in front chooses ("hccl 9",
// "drvRetCode=6", "ret -8005"). Takes about a millisecond, so that it needs no
// index.
Answer LookUp(const Catalogue& catalogue, std::string_view query,
              size_t limit = 8);

}  // namespace belay::diag

#endif  // BELAY_DIAG_LOOKUP_H_
