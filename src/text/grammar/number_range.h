// SPDX-License-Identifier: Apache-2.0
// Numbers of JSON between two bounds.
#ifndef BELAY_TEXT_GRAMMAR_NUMBER_RANGE_H_
#define BELAY_TEXT_GRAMMAR_NUMBER_RANGE_H_

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/grammar/grammar.h"

namespace belay::text {

// A decimal number without an exponent.
struct Decimal {
  bool negative = false;  // never for zero
  std::string whole;      // digits; "0" or without a leading zero
  std::string fraction;   // digits without a trailing zero
};

// Reads a number of JSON. Nothing when it is none (NaN) or has more than 40
// digits before or behind the point.
std::optional<Decimal> ParseDecimal(std::string_view text);

// -1, 0, 1.
int Compare(const Decimal& a, const Decimal& b);

struct NumberBound {
  Decimal value;
  bool exclusive = false;
};
struct NumberRange {
  std::optional<NumberBound> low;
  std::optional<NumberBound> high;
  bool integer = false;
};

// A rule for the numbers of a range. Narrower than the range so that every
// program reads the number as it is meant: at most 18 digits for integers, 15
// for others beside what the bounds have; an exponent only without bounds.
GrammarRule AddNumbers(GrammarBuilder& builder, const NumberRange& range);

}  // namespace belay::text

#endif  // BELAY_TEXT_GRAMMAR_NUMBER_RANGE_H_
