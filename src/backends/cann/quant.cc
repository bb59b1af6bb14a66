// SPDX-License-Identifier: Apache-2.0
// A BF16 number read as an INT16 is 128 * exponent field + mantissa. That turns
// powers of two into arithmetic:
//
//   The scale of a group is the least power of two s with amax <= max * s.
//   With max = 448 = 2^8 * (1 + 96/128) it has amax's exponent - 8, and one
//   more when amax's mantissa is above 96: adding 127 - 96 carries then. For
//   6 = 2^2 * (1 + 64/128) likewise.
//
//   v is rounded to m bits behind the first by adding and subtracting M = 1.5 *
//   2^(23 - m) * 2^floor(log2 |v|) in float32: 1.5 is mantissa 64, the power
//   an exponent. Below the least normal number the step stays.
#include "backends/cann/quant.h"

namespace belay::cann {
namespace {

struct Rule {
  double carry;       // 127 - mantissa of max
  double exponent;    // of max, in bits of the field
  double least_bits;  // of amax, read as an integer
  double normal;      // least number of full precision
  double magic_bits;  // to add to 128 * exponent field
};

constexpr Rule RuleOf(Code code) {
  // The floor of amax: 1e-4 has exponent field 113; 6 * 2^-126 is 3 * 128 + 64.
  return code == Code::kE4m3
             ? Rule{31, 8 * 128, 113 * 128, 0x1p-6, 20 * 128 + 64}
             : Rule{63, 2 * 128, 3 * 128 + 64, 1, 22 * 128 + 64};
}

// bits / 128 without its fraction, * 128 + `add`, as INT16; bits F32, spoiled.
void FloorToPower(Compute& c, const Array& out, const Array& bits, double add) {
  c.Scale(bits, 1.0 / 128);
  c.Cast(out, bits);  // towards zero
  c.Scale(out, 128);
  c.Offset(out, add);
}

// The power of two of each group, BF16 [n_rows, n_groups, 1].
Array ScalesOf(Compute& c, const Array& x3, const Rule& rule) {
  const int64_t rows = x3.dim(0);
  const int64_t groups = x3.dim(1);
  const Array scale = c.Temp(kBf16, {rows, groups, 1});
  const Compute::Scope scope(c);
  const Array magnitude = c.Temp(kBf16, {rows, groups, x3.dim(2)});
  c.Abs(magnitude, x3);
  const Array amax = c.Temp(kBf16, {rows, groups, 1});
  c.Max(amax, magnitude, 2);
  const Array bits = c.Temp(kF32, {rows, groups, 1});
  c.Cast(bits, amax.As(kI16));
  c.AtLeast(bits, bits, rule.least_bits);
  c.Offset(bits, rule.carry);
  FloorToPower(c, scale.As(kI16), bits, -rule.exponent);
  return scale;
}

}  // namespace

void QuantDequant(Compute& c, const Array& out, const Array& x, int64_t group,
                  Code code) {
  const Rule rule = RuleOf(code);
  const Compute::Scope scope(c);
  const auto grouped = [&](const Array& a) {
    Array g = a.Insert(1, a.dim(1) / group, group * a.stride(1));
    g.dims[2] = group;
    return g;
  };
  const Array x3 = grouped(x);
  const int64_t rows = x3.dim(0);
  const int64_t groups = x3.dim(1);
  const Array scale = ScalesOf(c, x3, rule);
  const Array v = c.Temp(kBf16, {rows, groups, group});
  c.Div(v, x3, scale);
  const Array magic = c.Temp(kBf16, {rows, groups, group});
  const Array wide = c.Temp(kF32, {rows, groups, group});
  c.Abs(magic, v);
  c.AtLeast(magic, magic, rule.normal);
  c.Cast(wide, magic.As(kI16));
  FloorToPower(c, magic.As(kI16), wide, rule.magic_bits);
  c.Cast(wide, v);
  c.Add(wide, wide, magic);
  c.Sub(wide, wide, magic);
  c.Mul(grouped(out), wide, scale);
}

}  // namespace belay::cann
