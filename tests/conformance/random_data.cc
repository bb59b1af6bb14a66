// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/random_data.h"

#include <cstring>
#include <numbers>

#include "base/float_formats.h"
#include "base/random.h"

namespace belay::conformance {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

float Random::Uniform() { return UniformFrom(seed_, counter_++); }

float Random::Normal() {
  const double u = 1.0 - Uniform();
  const double angle = 2.0 * std::numbers::pi * Uniform();
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(angle));
}

int32_t Random::Below(int32_t n) {
  return static_cast<int32_t>(Uniform() * static_cast<float>(n));
}

std::vector<float> Random::Values(int64_t n, float scale) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) {
    values.push_back(RoundToBf16(scale * Normal()));
  }
  return values;
}

std::string NameOf(WeightForm form) {
  if (form >= WeightForm::kQ8_0) {
    return std::string(BlockFormatName(FormatOf(form)));
  }
  const char* names[] = {"f32", "bf16", "f16", "fp8", "fp8, f32 scales", "fp4"};
  return names[static_cast<size_t>(form)];
}

BlockFormat FormatOf(WeightForm form) {
  constexpr int kFirst = static_cast<int>(WeightForm::kQ8_0);
  const int at = static_cast<int>(form) - kFirst;
  return at < 0 ? BlockFormat::kNone : static_cast<BlockFormat>(at + 1);
}

namespace {

// Where the float16 scales of a block are; -1 for none.
struct HalfFields {
  int d = -1;
  int dmin = -1;
};

HalfFields FieldsOf(BlockFormat format) {
  switch (format) {
    case BlockFormat::kQ2K:
      return {80, 82};
    case BlockFormat::kQ3K:
      return {108, -1};
    case BlockFormat::kQ4K:
    case BlockFormat::kQ5K:
      return {0, 2};
    case BlockFormat::kQ6K:
      return {208, -1};
    case BlockFormat::kQ8_0:
      return {0, -1};
    default:
      return {};
  }
}

void PutHalf(uint8_t* block, int at, float value) {
  if (at < 0) return;
  const uint16_t bits = F16FromF32(value);
  std::memcpy(block + at, &bits, sizeof(bits));
}

}  // namespace

// Any codes, with scales that a model could have.
void RandomWeight::MakeBlocks(Random& random, BlockFormat format) {
  const auto n_blocks =
      static_cast<size_t>(n_out_ * n_in_ / BlockValues(format));
  const size_t bytes = BlockBytes(format);
  codes_.resize(n_blocks * bytes);
  for (uint8_t& code : codes_) code = static_cast<uint8_t>(random.Below(256));
  const HalfFields at = FieldsOf(format);
  std::vector<uint8_t> sums = codes_;  // with dmin < 0: parts add up
  for (size_t i = 0; i < n_blocks; ++i) {
    const float d = 0.001f * (1.0f + random.Uniform());
    const auto e8m0 = static_cast<uint8_t>(118 + random.Below(4));
    for (std::vector<uint8_t>* to : {&codes_, &sums}) {
      uint8_t* const block = to->data() + i * bytes;
      if (format == BlockFormat::kMxfp4) block[0] = e8m0;
      PutHalf(block, at.d, d);
      PutHalf(block, at.dmin, to == &sums ? -d : d);
    }
  }
  const size_t row_bytes = codes_.size() / static_cast<size_t>(n_out_);
  std::vector<double> row(static_cast<size_t>(n_in_));
  for (int64_t n = 0; n < n_out_; ++n) {
    DecodeBlocks(format,
                 reinterpret_cast<const std::byte*>(sums.data()) +
                     static_cast<size_t>(n) * row_bytes,
                 n_in_, row.data());
    double sum = 0.0;
    for (const double v : row) sum += v * v;
    norms_.push_back(std::sqrt(sum));
  }
  source_.format = format;
  source_.weight = ConstTensorView(codes_.data(), DType::kU8,
                                   {n_out_, static_cast<int64_t>(row_bytes)});
}

RandomWeight::RandomWeight(Random& random, WeightForm form, int64_t n_out,
                           int64_t n_in)
    : n_out_(n_out), n_in_(n_in) {
  if (form >= WeightForm::kQ8_0) {
    MakeBlocks(random, FormatOf(form));
    return;
  }
  if (form == WeightForm::kFp4) {
    source_.block_n = 1;
    source_.block_k = 32;
  }
  if (form >= WeightForm::kFp8) MakeScales(random, form);
  for (int64_t n = 0; n < n_out; ++n) {
    double sum = 0.0;
    for (int64_t k = 0; k < n_in; ++k) {
      float value = random.Normal();
      if (form == WeightForm::kF32) {
        floats_.push_back(value);
      } else if (form == WeightForm::kBf16) {
        halves_.push_back(Bf16FromF32(value));
      } else if (form == WeightForm::kF16) {
        halves_.push_back(F16FromF32(value));
      } else if (form == WeightForm::kFp4) {
        const uint8_t code = E2m1FromF32(2.0f * value);
        if (k % 2 == 0) codes_.push_back(code);
        if (k % 2 == 1) codes_.back() |= static_cast<uint8_t>(code << 4);
        value = F32FromE2m1(code) * ScaleOf(form, n, k);
      } else {
        codes_.push_back(E4m3FromF32(100.0f * value));
        value = F32FromE4m3(codes_.back()) * ScaleOf(form, n, k);
      }
      sum += static_cast<double>(value) * value;
    }
    norms_.push_back(std::sqrt(sum));
  }
  if (form == WeightForm::kF32) {
    source_.weight =
        ConstTensorView(floats_.data(), DType::kF32, {n_out, n_in});
  } else if (form == WeightForm::kBf16) {
    source_.weight =
        ConstTensorView(halves_.data(), DType::kBF16, {n_out, n_in});
  } else if (form == WeightForm::kF16) {
    source_.weight =
        ConstTensorView(halves_.data(), DType::kF16, {n_out, n_in});
  } else if (form == WeightForm::kFp4) {
    source_.weight =
        ConstTensorView(codes_.data(), DType::kI8, {n_out, n_in / 2});
  } else {
    source_.weight =
        ConstTensorView(codes_.data(), DType::kF8E4M3, {n_out, n_in});
  }
}

// Powers of two within 2^-9 .. 2^-6; the float32 ones are no powers of two.
void RandomWeight::MakeScales(Random& random, WeightForm form) {
  const Shape shape = {CeilDiv(n_out_, source_.block_n),
                       CeilDiv(n_in_, source_.block_k)};
  for (int64_t i = 0; i < shape.n_elements(); ++i) {
    scales_.push_back(static_cast<uint8_t>(118 + random.Below(4)));
    f32_scales_.push_back(F32FromE8m0(scales_.back()) *
                          (0.5f + random.Uniform()));
  }
  source_.scale = form == WeightForm::kFp8F32Scale
                      ? ConstTensorView(f32_scales_.data(), DType::kF32, shape)
                      : ConstTensorView(scales_.data(), DType::kF8E8M0, shape);
}

float RandomWeight::ScaleOf(WeightForm form, int64_t n, int64_t k) const {
  const int64_t i =
      n / source_.block_n * source_.scale.dim(1) + k / source_.block_k;
  return form == WeightForm::kFp8F32Scale
             ? f32_scales_[static_cast<size_t>(i)]
             : F32FromE8m0(scales_[static_cast<size_t>(i)]);
}

}  // namespace belay::conformance
