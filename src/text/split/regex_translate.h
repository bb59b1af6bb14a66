// SPDX-License-Identifier: Apache-2.0
// Patterns as Hugging Face's tokenizers read them (Oniguruma), in the syntax of
// PCRE2. Character properties become explicit ranges of our Unicode tables.
#ifndef BELAY_TEXT_SPLIT_REGEX_TRANSLATE_H_
#define BELAY_TEXT_SPLIT_REGEX_TRANSLATE_H_

#include <string>
#include <string_view>

#include "base/error.h"

namespace belay::text {

// TOK-005 for whatever could mean something else in PCRE2, or needs tables
// that we do not have: anchors, \w, \b, scripts, back references, named groups,
// flags, class intersections, class brackets inside a class. `pattern` is valid
// UTF-8.
StatusOr<std::string> TranslateRegex(std::string_view pattern,
                                     std::string_view where);

}  // namespace belay::text

#endif  // BELAY_TEXT_SPLIT_REGEX_TRANSLATE_H_
