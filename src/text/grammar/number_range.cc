// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/number_range.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>

namespace belay::text {
namespace {

constexpr size_t kIntegerDigits = 18;  // fits 64 bits
constexpr size_t kDoubleDigits = 15;   // any decimal so long survives a double
constexpr size_t kMaxBoundDigits = 40;

// Edges for magnitudes from `low` to `high` with `n_whole` digits before the
// point. Both bounds have exactly that many; a missing high is all nines that
// go on for ever.
class Digits {
 public:
  struct Bound {
    std::string whole;
    std::string fraction;
    bool exclusive = false;
  };

  Digits(GrammarBuilder& builder, Bound low, std::optional<Bound> high,
         size_t n_fraction)
      : builder_(builder),
        low_(std::move(low)),
        high_(std::move(high)),
        n_fraction_(n_fraction) {}

  void Add(GrammarNode from, GrammarNode to) {
    to_ = to;
    builder_.Empty(
        from,
        NodeAt(
            {.at = 0, .point = false, .low = true, .high = high_.has_value()}));
  }

 private:
  // Digits so far, and whether they equal those of a bound.
  struct Position {
    size_t at = 0;
    bool point = false;  // the digits behind the point
    bool low = false;
    bool high = false;
    // clang-tidy 14 takes the 0 of a defaulted <=> for a pointer.
    // NOLINTNEXTLINE(modernize-use-nullptr)
    auto operator<=>(const Position&) const = default;
  };

  static bool HasMore(const std::string& digits, size_t at) {
    return digits.find_first_not_of('0', at) != std::string::npos;
  }

  bool MayEnd(const Position& p) const {
    const size_t at = p.point ? p.at : 0;
    if (p.low && (low_.exclusive || HasMore(low_.fraction, at))) {
      // Equal so far: smaller than the bound, or the bound itself.
      return false;
    }
    if (p.high && high_->exclusive && !HasMore(high_->fraction, at)) {
      return false;
    }
    return true;
  }

  static char DigitAt(const Bound& bound, const Position& p) {
    const std::string& digits = p.point ? bound.fraction : bound.whole;
    return p.at < digits.size() ? digits[p.at] : '0';
  }

  GrammarNode NodeAt(const Position& position) {
    const auto found = nodes_.find(position);
    if (found != nodes_.end()) return found->second;
    const GrammarNode node = builder_.NewNode();
    nodes_[position] = node;
    // Positions only go forward, so this ends after all digits.
    const bool whole_done = position.at == low_.whole.size();
    if (!position.point && whole_done) {
      if (MayEnd(position)) builder_.Empty(node, to_);
      if (n_fraction_ > 0) {
        Position next = position;
        next.at = 0;
        next.point = true;
        const GrammarNode point = builder_.Literal(node, ".");
        AddDigits(point, next);
      }
      return node;
    }
    if (position.point && position.at > 0 && MayEnd(position)) {
      builder_.Empty(node, to_);
    }
    if (!position.point || position.at < n_fraction_) AddDigits(node, position);
    return node;
  }

  void AddDigits(GrammarNode node, const Position& position) {
    const char first = position.low ? DigitAt(low_, position) : '0';
    const char last = position.high ? DigitAt(*high_, position) : '9';
    for (char digit = first; digit <= last; ++digit) {
      Position next = position;
      ++next.at;
      next.low = position.low && digit == first;
      next.high = position.high && digit == last;
      builder_.Bytes(node, static_cast<uint8_t>(digit),
                     static_cast<uint8_t>(digit), NodeAt(next));
    }
  }

  GrammarBuilder& builder_;
  Bound low_;
  std::optional<Bound> high_;
  size_t n_fraction_;
  GrammarNode to_ = 0;
  std::map<Position, GrammarNode> nodes_;
};

Decimal Zero() { return {.negative = false, .whole = "0", .fraction = ""}; }

Decimal Magnitude(Decimal value) {
  value.negative = false;
  return value;
}

// Magnitudes between two bounds that are not negative.
struct Ends {
  GrammarNode from = 0;
  GrammarNode to = 0;
};
void AddMagnitudes(GrammarBuilder& builder, Ends ends, const NumberBound& low,
                   const std::optional<NumberBound>& high, bool integer) {
  if (high && Compare(low.value, high->value) > 0) return;
  const size_t n_max = integer ? kIntegerDigits : kDoubleDigits;
  const size_t n_low = low.value.whole.size();
  const size_t n_high =
      high ? high->value.whole.size() : std::max(n_max, n_low + 1);
  // Far above the low bound the top need not be reached.
  const size_t n_last = std::min(n_high, std::max(n_max, n_low + 1));
  size_t n_fraction = low.value.fraction.size();
  if (high) n_fraction = std::max(n_fraction, high->value.fraction.size());
  for (size_t n = n_low; n <= n_last; ++n) {
    Digits::Bound first = {low.value.whole, low.value.fraction, low.exclusive};
    if (n > n_low) first = {"1" + std::string(n - 1, '0'), "", false};
    std::optional<Digits::Bound> last;
    if (high && n == n_high) {
      last = {high->value.whole, high->value.fraction, high->exclusive};
    }
    const size_t free = kDoubleDigits > n ? kDoubleDigits - n : 0;
    const size_t digits =
        integer ? 0 : std::max(n_fraction, std::min(n_fraction + 6, free));
    Digits(builder, std::move(first), std::move(last), digits)
        .Add(ends.from, ends.to);
  }
}

GrammarRule AddBounded(GrammarBuilder& builder, const NumberRange& range) {
  const GrammarRule rule = builder.NewRule();
  const GrammarNode from = builder.start(rule);
  const GrammarNode to = builder.end(rule);
  const bool below_zero = !range.low || range.low->value.negative;
  const bool above_zero = !range.high || !range.high->value.negative;
  if (above_zero) {
    const NumberBound zero = {Zero(), false};
    AddMagnitudes(builder, {from, to}, below_zero ? zero : *range.low,
                  range.high, range.integer);
  }
  if (below_zero) {
    // Mirrored. From zero on exclusively: -0 is no number to ask for.
    NumberBound low = {Zero(), true};
    if (!above_zero) {
      low = {Magnitude(range.high->value), range.high->exclusive};
    }
    std::optional<NumberBound> high;
    if (range.low) {
      high = {Magnitude(range.low->value), range.low->exclusive};
    }
    AddMagnitudes(builder, {builder.Literal(from, "-"), to}, low, high,
                  range.integer);
  }
  return rule;
}

// 1 to n digits.
GrammarNode AddDigitRun(GrammarBuilder& builder, GrammarNode from, size_t n) {
  const GrammarNode to = builder.NewNode();
  for (size_t i = 0; i < n; ++i) {
    const GrammarNode next = builder.NewNode();
    builder.Bytes(from, '0', '9', next);
    builder.Empty(next, to);
    from = next;
  }
  return to;
}

GrammarRule AddFree(GrammarBuilder& builder, bool integer) {
  const GrammarRule rule = builder.NewRule();
  const GrammarNode sign = builder.start(rule);
  const GrammarNode first = builder.Literal(sign, "-");
  builder.Empty(sign, first);
  const GrammarNode whole = builder.NewNode();
  builder.Bytes(first, '0', '0', whole);
  const GrammarNode more = builder.NewNode();
  builder.Bytes(first, '1', '9', more);
  builder.Empty(more, whole);
  builder.Empty(AddDigitRun(builder, more, kIntegerDigits - 1), whole);
  builder.Empty(whole, builder.end(rule));
  if (integer) return rule;
  const GrammarNode fraction =
      AddDigitRun(builder, builder.Literal(whole, "."), kDoubleDigits + 2);
  builder.Empty(fraction, builder.end(rule));
  const GrammarNode e = builder.NewNode();
  for (const GrammarNode node : {whole, fraction}) {
    builder.Bytes(node, 'e', 'e', e);
    builder.Bytes(node, 'E', 'E', e);
  }
  const GrammarNode exponent = builder.NewNode();
  builder.Empty(e, exponent);
  builder.Bytes(e, '+', '+', exponent);
  builder.Bytes(e, '-', '-', exponent);
  builder.Empty(AddDigitRun(builder, exponent, 2), builder.end(rule));
  return rule;
}

void Trim(Decimal* value) {
  const size_t first = value->whole.find_first_not_of('0');
  value->whole = first == std::string::npos ? "0" : value->whole.substr(first);
  const size_t last = value->fraction.find_last_not_of('0');
  value->fraction.resize(last == std::string::npos ? 0 : last + 1);
  if (value->whole == "0" && value->fraction.empty()) value->negative = false;
}

}  // namespace

std::optional<Decimal> ParseDecimal(std::string_view text) {
  Decimal value;
  if (text.starts_with('-')) {
    value.negative = true;
    text.remove_prefix(1);
  }
  if (text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) {
    return std::nullopt;
  }
  long exponent = 0;
  const size_t e = text.find_first_of("eE");
  if (e != std::string_view::npos) {
    exponent =
        std::strtol(std::string(text.substr(e + 1)).c_str(), nullptr, 10);
    text = text.substr(0, e);
  }
  const size_t point = text.find('.');
  value.whole = text.substr(0, point);
  if (point != std::string_view::npos) value.fraction = text.substr(point + 1);
  constexpr auto kMax = static_cast<long>(kMaxBoundDigits);
  if (std::labs(exponent) > kMax || value.whole.size() > kMaxBoundDigits ||
      value.fraction.size() > kMaxBoundDigits) {
    return std::nullopt;
  }
  for (; exponent > 0; --exponent) {
    value.whole += value.fraction.empty() ? '0' : value.fraction[0];
    if (!value.fraction.empty()) value.fraction.erase(0, 1);
  }
  for (; exponent < 0; ++exponent) {
    value.fraction.insert(0, 1, value.whole.empty() ? '0' : value.whole.back());
    if (!value.whole.empty()) value.whole.pop_back();
  }
  Trim(&value);
  if (value.whole.size() > kMaxBoundDigits ||
      value.fraction.size() > kMaxBoundDigits) {
    return std::nullopt;
  }
  return value;
}

int Compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  const auto key = [](const Decimal& d) {
    return std::tuple(d.whole.size(), std::string_view(d.whole),
                      std::string_view(d.fraction));
  };
  const int order = key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0;
  return a.negative ? -order : order;
}

GrammarRule AddNumbers(GrammarBuilder& builder, const NumberRange& range) {
  return range.low || range.high ? AddBounded(builder, range)
                                 : AddFree(builder, range.integer);
}

}  // namespace belay::text
