// SPDX-License-Identifier: Apache-2.0
// Ranked full-text search over the catalogue, both languages at once.
#ifndef BELAY_DIAG_SEARCH_H_
#define BELAY_DIAG_SEARCH_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "diag/catalogue.h"

namespace belay::diag {

struct Ranked {
  const Entry* entry = nullptr;
  double score = 0;     // comparable within one search
  double coverage = 0;  // share of the query, by rarity of its words, 0 to 1
};

// The entries that hold at least half of the query, the best first. English
// words match from their start and without plural or tense; Chinese text
// matches by pairs of characters.
std::vector<Ranked> SearchWords(const Catalogue& catalogue,
                                std::string_view query);

}  // namespace belay::diag

#endif  // BELAY_DIAG_SEARCH_H_
