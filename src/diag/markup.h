// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_DIAG_MARKUP_H_
#define BELAY_DIAG_MARKUP_H_

#include <string>
#include <string_view>

namespace belay::diag {

// Text as it may stand in HTML and SVG, in attributes between double quotes
// too.
std::string EscapeMarkup(std::string_view text);

}  // namespace belay::diag

#endif  // BELAY_DIAG_MARKUP_H_
