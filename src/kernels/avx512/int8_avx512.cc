// SPDX-License-Identifier: Apache-2.0
// VPDPBUSD takes unsigned by signed bytes. Weights are the unsigned ones, their
// value + 128; the sum of a part starts at -128 times the sum of its x, which
// x brings with it, so that the offset costs nothing.
#include "kernels/avx512/int8_avx512.h"

#if defined(__x86_64__)

#include "kernels/avx512/tiles-inl.h"

namespace belay::kernels::avx512 {
namespace {

// Columns of a part: one scale of x.
constexpr int64_t kPartCols = 32;
constexpr int64_t kPartsOfBlock = kPackCols / kPartCols;

// A block of packed x: 128 codes, units of four columns in the order 0 4 1 5
// and 2 6 3 7 of every eight, then for each part its scale (f32) and -128 times
// the sum of its codes (int32).
struct XPart {
  float scale;
  int32_t start;
};
constexpr int64_t kXBytes =
    kPackCols + kPartsOfBlock * static_cast<int64_t>(sizeof(XPart));

inline __attribute__((always_inline)) XPart PartOf(const std::byte* x, int p) {
  XPart part;
  __builtin_memcpy(
      &part, x + kPackCols + static_cast<int64_t>(sizeof(part)) * int64_t{p},
      sizeof(part));
  return part;
}

struct Int8Products {
  using Part = __m512i;
  using Operand = __m512i;
  static constexpr int kParts = static_cast<int>(kPartsOfBlock);
  static constexpr int64_t kXBlockBytes = kXBytes;
  static constexpr bool kStreams = true;
  static constexpr int kGroupTokens = 8;
  static constexpr int64_t kPanelTokens = 0;

  static inline __attribute__((always_inline)) Part Start(const std::byte* x,
                                                          int p) {
    return _mm512_set1_epi32(PartOf(x, p).start);
  }
  static inline __attribute__((always_inline)) Operand FromUnit(__m512i unit) {
    return unit;
  }
  static inline __attribute__((always_inline)) Part Dot(Part part, Operand w,
                                                        Operand x) {
    return _mm512_dpbusd_epi32(part, w, x);
  }
  static inline __attribute__((always_inline)) void AddPart(
      Part part, __m512 scale, const std::byte* x, int p, __m512* sum) {
    const __m512 both =
        _mm512_mul_ps(scale, _mm512_set1_ps(PartOf(x, p).scale));
    *sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(part), both, *sum);
  }
};

// WeightKind::kInt8.
struct Int8Codes : Int8Products {
  static constexpr int kStepUnits = 1;
  static constexpr int kSteps = 32;
  static constexpr int kScaleBytes = 2;
  static constexpr bool kOuterScale = true;
  static constexpr int64_t kVectorBytes =
      int64_t{kSteps} * 64 + int64_t{kParts} * kPackLanes * kScaleBytes;

  inline __attribute__((always_inline)) void Decode(
      const std::byte* p, Operand (&w)[kStepUnits]) const {
    w[0] = _mm512_loadu_si512(p);
  }
  // f16.
  static inline __m512 Scale(const std::byte* scales) {
    return _mm512_cvtph_ps(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(scales)));
  }
};

// WeightKind::kFp4: codes become 128 + twice their value.
struct Fp4Codes : Int8Products {
  static constexpr int kStepUnits = 2;
  static constexpr int kSteps = 16;
  static constexpr int kScaleBytes = 1;
  static constexpr bool kOuterScale = false;
  static constexpr int64_t kVectorBytes =
      int64_t{kSteps} * 64 + int64_t{kParts} * kPackLanes * kScaleBytes;
  __m512i table;
  __m512i nibble;

  Fp4Codes()
      : table(_mm512_broadcast_i32x4(
            _mm_setr_epi8(Code(0), Code(1), Code(2), Code(3), Code(4), Code(6),
                          Code(8), Code(12), Code(0), Code(-1), Code(-2),
                          Code(-3), Code(-4), Code(-6), Code(-8), Code(-12)))),
        nibble(_mm512_set1_epi8(15)) {}

  inline __attribute__((always_inline)) void Decode(
      const std::byte* p, Operand (&w)[kStepUnits]) const {
    const __m512i codes = _mm512_loadu_si512(p);
    const __m512i high = _mm512_srli_epi16(codes, 4);
    w[0] = _mm512_shuffle_epi8(table, _mm512_and_si512(codes, nibble));
    w[1] = _mm512_shuffle_epi8(table, _mm512_and_si512(high, nibble));
  }
  // Half of 2^(e8m0 - 127), since the codes are doubled; e8m0 0 is the
  // subnormal 2^-127.
  static inline __m512 Scale(const std::byte* codes) {
    const __m512i lanes = _mm512_cvtepu8_epi32(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
    const __m512 scale = _mm512_castsi512_ps(_mm512_max_epu32(
        _mm512_slli_epi32(lanes, 23), _mm512_set1_epi32(0x00400000)));
    return _mm512_mul_ps(scale, _mm512_set1_ps(0.5f));
  }

 private:
  static constexpr char Code(int twice) {
    return static_cast<char>(static_cast<unsigned char>(128 + twice));
  }
};

// Quantises 32 values.
void PackPart(const float* x, std::byte* codes, XPart* part) {
  const __m512 low = _mm512_loadu_ps(x);
  const __m512 high = _mm512_loadu_ps(x + 16);
  const float amax = _mm512_reduce_max_ps(
      _mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high)));
  const __m512 inverse = _mm512_set1_ps(amax == 0.0f ? 0.0f : 127.0f / amax);
  const __m512i q0 = _mm512_cvtps_epi32(_mm512_mul_ps(low, inverse));
  const __m512i q1 = _mm512_cvtps_epi32(_mm512_mul_ps(high, inverse));
  const __m128i order =
      _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
  auto* const out = reinterpret_cast<__m128i*>(codes);
  _mm_storeu_si128(out, _mm_shuffle_epi8(_mm512_cvtepi32_epi8(q0), order));
  _mm_storeu_si128(out + 1, _mm_shuffle_epi8(_mm512_cvtepi32_epi8(q1), order));
  part->scale = amax / 127.0f;
  part->start = -128 * _mm512_reduce_add_epi32(_mm512_add_epi32(q0, q1));
}

}  // namespace

size_t PackedInt8Bytes(int64_t n_cols) {
  return static_cast<size_t>((n_cols + kPackCols - 1) / kPackCols * kXBytes);
}

void PackInt8(const float* x, int64_t begin, int64_t n, int64_t,
              std::byte* packed) {
  std::byte* block = packed + begin / kPackCols * kXBytes;
  for (int64_t at = 0; at < n; at += kPackCols, block += kXBytes) {
    XPart parts[kPartsOfBlock] = {};
    int64_t p = 0;
    for (; p < kPartsOfBlock && at + p * kPartCols < n; ++p) {
      PackPart(x + at + p * kPartCols, block + p * kPartCols, parts + p);
    }
    // A last block that is not whole. Nobody writes one twice: pieces begin at
    // multiples of 128, and the last ends with the row.
    __builtin_memset(block + p * kPartCols, 0,
                     static_cast<size_t>((kPartsOfBlock - p) * kPartCols));
    __builtin_memcpy(block + kPackCols, parts, sizeof(parts));
  }
}

void RunInt8(const MatMulArgs& args) {
  if (args.n_tokens < 1) return;
  switch (args.weight->kind) {
    case WeightKind::kInt8:
      return RunFormat<Int8Codes>(args);
    case WeightKind::kFp4:
      return RunFormat<Fp4Codes>(args);
    default:
      return;  // Int8DotMatMul() gives no kernel
  }
}

}  // namespace belay::kernels::avx512

#endif  // __x86_64__
