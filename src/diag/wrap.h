// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_DIAG_WRAP_H_
#define BELAY_DIAG_WRAP_H_

#include <string>
#include <string_view>
#include <vector>

namespace belay::diag {

// Breaks UTF-8 `text` into lines of at most `width` columns: at spaces, and
// between Chinese characters (two columns each), but never before a closing or
// after an opening punctuation mark. A word that is longer than a line stays
// whole. Newlines in the text end a line.
std::vector<std::string> WrapLines(std::string_view text, int width);

// Columns that `text` takes in a terminal.
int DisplayWidth(std::string_view text);

}  // namespace belay::diag

#endif  // BELAY_DIAG_WRAP_H_
