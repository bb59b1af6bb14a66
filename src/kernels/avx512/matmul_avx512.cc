// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512/matmul_avx512.h"

#if defined(__x86_64__)

#include "kernels/avx512/formats-inl.h"
#include "kernels/avx512/tiles-inl.h"

namespace belay::kernels::avx512 {
namespace {

// The block with its codes decoded to `panel` [units, width].
template <class Format, class ScaleAt, class Scaled>
Block DecodeTo(const Format& format, Block block, std::byte* panel,
               const ScaleAt& scale_at, const Scaled& scaled) {
  constexpr int64_t kSteps = Format::kSteps / Format::kParts;
  const std::byte* codes = block.codes;
  auto* out = reinterpret_cast<__m512bh*>(panel);
  for (int p = 0; p < Format::kParts; ++p) {
    for (int64_t v = 0; v < block.width; ++v) {
      const auto scale = scale_at(p * block.width + v);
      for (int64_t s = 0; s < kSteps; ++s) {
        __m512bh w[Format::kStepUnits];
        format.Decode(codes + (s * block.width + v) * 64, w);
        for (int64_t j = 0; j < Format::kStepUnits; ++j) {
          out[(s * Format::kStepUnits + j) * block.width + v] =
              scaled(w[j], scale);
        }
      }
    }
    codes += kSteps * block.width * 64;
    out += kSteps * Format::kStepUnits * block.width;
  }
  block.codes = panel;
  return block;
}

inline bool CanDecode(const Fp8&, const Block&) { return true; }

Block DecodeBlock(const Fp8& format, const Block& block, std::byte* panel) {
  return DecodeTo(
      format, block, panel, [](int64_t) { return 0; },
      [](__m512bh w, int) { return w; });
}

// A scale is a power of two: it moves the exponents of the weights, which are
// 2^-1 to 2^2, exactly. With 2^-30 to 2^30 every product that has an activation
// of 2^-94 or more stays a normal number, and the official rule makes none
// below 2^-32; then scaling first or last gives the same bits.
bool CanDecode(const Fp4&, const Block& block) {
  const int64_t n = block.width * kPackLanes * Fp4::kParts;
  __mmask64 outside = 0;
  for (int64_t i = 0; i < n; i += 64) {
    const __m512i from_low = _mm512_sub_epi8(
        _mm512_loadu_si512(block.scales + i), _mm512_set1_epi8(127 - 30));
    outside |= _mm512_cmpgt_epu8_mask(from_low, _mm512_set1_epi8(60));
  }
  return outside == 0;
}

Block DecodeBlock(const Fp4& format, const Block& block, std::byte* panel) {
  // For both numbers of a pair; the mask keeps the lower one's sign out of the
  // upper.
  const auto exponents = [&](int64_t v) {
    const __m512i e = _mm512_sub_epi32(
        _mm512_cvtepu8_epi32(_mm_loadu_si128(
            reinterpret_cast<const __m128i*>(block.scales + v * kPackLanes))),
        _mm512_set1_epi32(127));
    return _mm512_or_si512(
        _mm512_slli_epi32(e, 23),
        _mm512_and_si512(_mm512_slli_epi32(e, 7), _mm512_set1_epi32(0xffff)));
  };
  return DecodeTo(format, block, panel, exponents, [](__m512bh w, __m512i e) {
    const auto bits = reinterpret_cast<__m512i>(w);
    const __mmask32 some =
        _mm512_test_epi16_mask(bits, _mm512_set1_epi16(0x7fff));
    return reinterpret_cast<__m512bh>(
        _mm512_mask_add_epi16(bits, some, bits, e));
  });
}

}  // namespace

// A cache line more than the columns: rows that are a multiple of 4 KiB apart
// would all meet in the same lines of the first-level cache.
size_t PackedBytes(int64_t n_cols) {
  return static_cast<size_t>((n_cols + kPackCols - 1) / kPackCols * kPackCols) *
             2 +
         64;
}

void Pack(const float* x, int64_t begin, int64_t n, int64_t n_cols,
          std::byte* packed) {
  uint16_t* out = reinterpret_cast<uint16_t*>(packed) + begin;
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask =
        n - i < 16 ? static_cast<__mmask16>((1u << (n - i)) - 1) : 0xffff;
    const __m512i v = _mm512_castps_si512(_mm512_maskz_loadu_ps(mask, x + i));
    _mm256_mask_storeu_epi16(out + i, mask,
                             _mm512_cvtepi32_epi16(_mm512_srli_epi32(v, 16)));
  }
  if (begin + n < n_cols) return;
  const size_t used = static_cast<size_t>(n_cols) * 2;
  __builtin_memset(packed + used, 0, PackedBytes(n_cols) - used);
}

void Run(const MatMulArgs& args) {
  if (args.n_tokens < 1) return;
  switch (args.weight->kind) {
    case WeightKind::kFp8:
      return RunFormat<Fp8>(args);
    case WeightKind::kFp4:
      return RunFormat<Fp4>(args);
    case WeightKind::kBf16:
      return RunFormat<Bf16>(args);
    default:
      return;  // Bf16MatMul() gives no kernel
  }
}

}  // namespace belay::kernels::avx512

#endif  // __x86_64__
