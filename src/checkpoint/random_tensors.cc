// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/random_tensors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/float_formats.h"
#include "base/random.h"

namespace belay::checkpoint {
namespace {

using spec::ExpectedTensor;
using spec::Family;
using spec::ModelConfig;
using spec::Role;

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         text.substr(text.size() - end.size()) == end;
}

uint64_t TensorSeed(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : name) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  }
  return RandomBits(seed, hash);
}

// About normal, mean 0, variance 1: the sum of four 16-bit uniform numbers.
float Normal(uint64_t seed, uint64_t counter) {
  const uint64_t bits = RandomBits(seed, counter);
  int64_t sum = 0;
  for (int i = 0; i < 4; ++i) {
    sum += static_cast<int64_t>((bits >> (16 * i)) & 0xffff);
  }
  constexpr float kStd = 37837.2275f;  // of the sum: sqrt(4 (2^32 - 1) / 12)
  return static_cast<float>(sum - int64_t{2} * 65535) / kStd;
}

// What a linear layer multiplies the size of its input by. Outputs that are
// added to the residual stream are damped, as in trained models.
double Gain(std::string_view name) {
  if (EndsWith(name, ".wo_b.weight") || EndsWith(name, ".wo_b.scale")) {
    return 0.5;
  }
  if (EndsWith(name, ".w2.weight") || EndsWith(name, ".w2.scale")) return 0.35;
  if (name == "head.weight") return 2.0;
  return 1.0;
}

struct Distribution {
  float mean = 0;
  float std = 0;
};

Distribution DistributionOf(const ModelConfig& c, const ExpectedTensor& t) {
  if (t.family == Family::kEmbed) return {0, 1};
  if (EndsWith(t.name, "norm.weight")) return {1, 0.02f};
  if (EndsWith(t.name, "_scale")) return {0.5f, 0};  // hyper-connections
  if (EndsWith(t.name, "_base")) return {0, 0.1f};
  if (EndsWith(t.name, "gate.bias")) return {0, 0.02f};
  if (EndsWith(t.name, ".ape")) return {0, 0.5f};
  if (EndsWith(t.name, "attn_sink")) return {0, 0.5f};
  const auto fan_in = static_cast<double>(
      EndsWith(t.name, "_fn") ? c.hc_mult * c.dim : t.shape[1]);
  return {0, static_cast<float>(Gain(t.name) / std::sqrt(fan_in))};
}

// hc_attn_base and hc_ffn_base: pre [hc], post [hc], comb [hc, hc]. The streams
// mostly keep to themselves.
float HcBias(const ModelConfig& c, const ExpectedTensor& t, int64_t element) {
  const int64_t comb = element - int64_t{2} * c.hc_mult;
  if (t.shape[0] == c.hc_mult || comb < 0) return 0;
  return comb / c.hc_mult == comb % c.hc_mult ? 2.0f : 0.0f;
}

// e4m3 codes of 256 quantiles of about a normal distribution with a standard
// deviation of kE4m3Std: one random byte makes one code.
constexpr double kE4m3Std = 64;

std::array<uint8_t, 256> MakeE4m3Quantiles() {
  std::array<double, 256> x{};
  double square_sum = 0;
  for (size_t i = 0; i < 256; ++i) {
    const double p = (static_cast<double>(i) + 0.5) / 256;
    x[i] = std::log(p / (1 - p));  // logistic: close, and short
    square_sum += x[i] * x[i];
  }
  const double scale = kE4m3Std / std::sqrt(square_sum / 256);
  std::array<uint8_t, 256> codes{};
  for (size_t i = 0; i < 256; ++i) {
    codes[i] = E4m3FromF32(static_cast<float>(x[i] * scale));
  }
  return codes;
}

// Root mean square of a uniformly random e2m1 code: sqrt(68.5 / 8).
constexpr double kE2m1Std = 2.926;

// A block's scale is 2^k or 2^(k+1), at random; k such that the weights have
// the wanted size on average (the two powers have a mean square of 2.5).
uint8_t ScaleCode(const ExpectedTensor& t, int64_t block, double code_std,
                  uint64_t bits) {
  const auto fan_in = static_cast<double>(t.shape[1] * block);
  const double wanted = Gain(t.name) / std::sqrt(fan_in);
  const double k = std::log2(wanted / (code_std * std::sqrt(2.5)));
  return static_cast<uint8_t>(127 + std::lround(k) +
                              static_cast<int64_t>(bits & 1));
}

void FillScales(const ModelConfig& c, const ExpectedTensor& t, uint64_t seed,
                int64_t first, std::span<std::byte> out) {
  const bool fp4 = t.family == Family::kExperts &&
                   c.expert_format == spec::ExpertFormat::kFp4;
  const uint8_t low = ScaleCode(t, fp4 ? c.fp4_block : c.fp8_block,
                                fp4 ? kE2m1Std : kE4m3Std, 0);
  const size_t element_bytes = DtypeBytes(t.dtype);
  for (size_t i = 0; i < out.size() / element_bytes; ++i) {
    const auto counter = static_cast<uint64_t>(first) + i;
    const auto code =
        static_cast<uint8_t>(low + (RandomBits(seed, counter) & 1));
    if (t.dtype == DType::kF8E8M0) {
      out[i] = std::byte{code};
    } else {
      const float value = F32FromE8m0(code);
      std::memcpy(out.data() + 4 * i, &value, 4);
    }
  }
}

// Different ids a row.
void FillExpertIds(const ModelConfig& c, uint64_t seed, int64_t first,
                   std::span<std::byte> out) {
  const auto k = static_cast<size_t>(c.n_activated_experts);
  const auto n_experts = static_cast<uint64_t>(c.n_routed_experts);
  const auto first_row = static_cast<uint64_t>(first) / k;
  std::vector<int64_t> ids;
  for (size_t row = 0; row < out.size() / (8 * k); ++row) {
    const uint64_t row_seed = RandomBits(seed, first_row + row);
    ids.clear();
    for (uint64_t draw = 0; ids.size() < k; ++draw) {
      const auto id =
          static_cast<int64_t>(RandomBits(row_seed, draw) % n_experts);
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    }
    std::memcpy(out.data() + row * 8 * k, ids.data(), 8 * k);
  }
}

// One byte a code: eight from each random number.
void FillCodes(DType dtype, uint64_t seed, int64_t first,
               std::span<std::byte> out) {
  static const std::array<uint8_t, 256> kQuantiles = MakeE4m3Quantiles();
  const auto counter = static_cast<uint64_t>(first) / 8;
  for (size_t i = 0; i < out.size(); i += 8) {
    const uint64_t bits = RandomBits(seed, counter + i / 8);
    for (size_t j = 0; j < 8 && i + j < out.size(); ++j) {
      const auto byte = static_cast<uint8_t>(bits >> (8 * j));
      // Packed FP4: any byte is two good codes.
      out[i + j] = std::byte{dtype == DType::kI8 ? byte : kQuantiles[byte]};
    }
  }
}

void FillNumbers(const ModelConfig& c, const ExpectedTensor& t, uint64_t seed,
                 int64_t first, std::span<std::byte> out) {
  const Distribution d = DistributionOf(c, t);
  const bool bf16 = t.dtype == DType::kBF16;
  const bool hc_base = EndsWith(t.name, "_base");
  const size_t element_bytes = DtypeBytes(t.dtype);
  for (size_t i = 0; i < out.size() / element_bytes; ++i) {
    const int64_t element = first + static_cast<int64_t>(i);
    float value = d.mean + d.std * Normal(seed, static_cast<uint64_t>(element));
    if (hc_base) value += HcBias(c, t, element);
    if (bf16) {
      const uint16_t code = Bf16FromF32(value);
      std::memcpy(out.data() + 2 * i, &code, 2);
    } else {
      std::memcpy(out.data() + 4 * i, &value, 4);
    }
  }
}

}  // namespace

void FillRandom(const ModelConfig& config, const ExpectedTensor& tensor,
                uint64_t seed, int64_t first_element,
                std::span<std::byte> out) {
  const uint64_t tensor_seed = TensorSeed(seed, tensor.name);
  if (tensor.role == Role::kScale) {
    return FillScales(config, tensor, tensor_seed, first_element, out);
  }
  if (tensor.role == Role::kTable) {
    return FillExpertIds(config, tensor_seed, first_element, out);
  }
  if (tensor.dtype == DType::kF8E4M3 || tensor.dtype == DType::kI8) {
    return FillCodes(tensor.dtype, tensor_seed, first_element, out);
  }
  FillNumbers(config, tensor, tensor_seed, first_element, out);
}

}  // namespace belay::checkpoint
