// SPDX-License-Identifier: Apache-2.0
// VPDPBUSD takes unsigned by signed bytes. Weights are the unsigned ones, their
// value + 128; the sum of a part starts at -128 times the sum of its x, which
// x brings with it, so that the offset costs nothing.
#include "kernels/avx512/int8_avx512.h"

#if defined(__x86_64__)

#include "kernels/avx512/tiles-inl.h"

namespace belay::kernels::avx512 {
namespace {

// Columns of a part: one scale of FP4, MXFP4 and Q8_0.
constexpr int64_t kPartCols = 32;
constexpr int64_t kPartsOfBlock = kPackCols / kPartCols;

// A block of packed x: 128 codes, units of four columns in the order 0 4 1 5
// and 2 6 3 7 of every eight, then for each part its scale and -128 times the
// sum of its codes.
struct XPart {
  float scale;
  int32_t start;
};
static_assert(offsetof(XPart, scale) == 0 && offsetof(XPart, start) == 4);
constexpr int64_t kXBytes =
    kPackCols + kPartsOfBlock * static_cast<int64_t>(sizeof(XPart));

struct Int8Products {
  using Part = __m512i;
  using Operand = __m512i;
  static constexpr int kParts = static_cast<int>(kPartsOfBlock);
  static constexpr int64_t kXBlockBytes = kXBytes;
  static constexpr bool kStreams = true;
  static constexpr int64_t kPanelTokens = 0;
  static constexpr int kGroupTokens = 6;
  static constexpr bool kInRegisters = true;

  static inline __attribute__((always_inline)) Part Start(const std::byte* x,
                                                          int p) {
    return UnitOf(x + kPackCols, 2 * p + 1);
  }
  static inline __attribute__((always_inline)) Operand FromUnit(__m512i unit) {
    return unit;
  }
  static inline __attribute__((always_inline)) Part Dot(Part part, Operand w,
                                                        Operand x) {
    // Not the intrinsic: GCC 12 copies every sum around in every step.
    asm("vpdpbusd %2, %1, %0" : "+v"(part) : "v"(w), "v"(x));
    return part;
  }
  static inline __attribute__((always_inline)) __m512 XScale(const std::byte* x,
                                                             int p) {
    return _mm512_castsi512_ps(UnitOf(x + kPackCols, 2 * p));
  }
};

// Weights with a scale a part: the parts join the block under both scales.
struct ScaledParts : Int8Products {
  static constexpr bool kFinishScale = false;

  static inline __attribute__((always_inline)) __m512 Begin(__m512) {
    return _mm512_setzero_ps();
  }
  static inline __attribute__((always_inline)) __m512 AddPart(
      Part part, __m512 scale, const std::byte* x, int p, __m512 block) {
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(part),
                           _mm512_mul_ps(scale, XScale(x, p)), block);
  }
  static inline __attribute__((always_inline)) __m512 Finish(__m512 block,
                                                             __m512,
                                                             __m512 sum) {
    return _mm512_add_ps(block, sum);
  }
};

// Weights with one scale for the block: it comes last.
struct ScaledBlocks : Int8Products {
  static constexpr bool kFinishScale = true;

  static inline __attribute__((always_inline)) __m512 Begin(__m512) {
    return _mm512_setzero_ps();
  }
  static inline __attribute__((always_inline)) __m512 AddPart(
      Part part, __m512, const std::byte* x, int p, __m512 block) {
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(part), XScale(x, p), block);
  }
  static inline __attribute__((always_inline)) __m512 Finish(__m512 block,
                                                             __m512 scale,
                                                             __m512 sum) {
    return _mm512_fmadd_ps(block, scale, sum);
  }
};

// WeightKind::kInt8 (ScaledParts) and kInt8Wide (ScaledBlocks).
template <class Products>
struct Int8Codes : Products {
  using typename Products::Operand;
  // Scales of 16 rows that stand in a block.
  static constexpr int64_t kScales =
      Products::kFinishScale ? 1 : Products::kParts;
  static constexpr int kStepUnits = 1;
  static constexpr int kSteps = 32;
  static constexpr int kScaleBytes = 2;
  static constexpr bool kOuterScale = true;
  static constexpr int64_t kVectorBytes =
      int64_t{kSteps} * 64 + kScales * kPackLanes * kScaleBytes;

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

// FP4 whose block has been decoded, under one scale (f32) a row.
struct Fp4Panel : ScaledBlocks {
  static constexpr bool kStreams = false;
  static constexpr int kStepUnits = 1;
  static constexpr int kSteps = 32;
  static constexpr int kScaleBytes = 4;
  static constexpr bool kOuterScale = false;

  inline __attribute__((always_inline)) void Decode(
      const std::byte* p, Operand (&w)[kStepUnits]) const {
    w[0] = _mm512_load_si512(p);
  }
  static inline __m512 Scale(const std::byte* scales) {
    return _mm512_load_ps(scales);
  }
};

// The bytes 128 + 2^(1 + shift) * value of the 16 codes.
inline __m512i Fp4Table(int shift) {
  alignas(16) unsigned char bytes[16];
  constexpr int kTwice[8] = {0, 1, 2, 3, 4, 6, 8, 12};
  for (int i = 0; i < 16; ++i) {
    const int value = kTwice[i & 7] * (1 << shift);
    bytes[i] = static_cast<unsigned char>(i < 8 ? 128 + value : 128 - value);
  }
  return _mm512_broadcast_i32x4(
      _mm_load_si128(reinterpret_cast<const __m128i*>(bytes)));
}

// Half of 2^(e8m0 - 127), since the codes are doubled; e8m0 0 is the subnormal
// 2^-127.
inline __m512 HalfScale(__m512i e8m0) {
  const __m512 scale = _mm512_castsi512_ps(_mm512_max_epu32(
      _mm512_slli_epi32(e8m0, 23), _mm512_set1_epi32(0x00400000)));
  return _mm512_mul_ps(scale, _mm512_set1_ps(0.5f));
}

inline __m512i E8m0Lanes(const std::byte* codes) {
  return _mm512_cvtepu8_epi32(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
}

// WeightKind::kFp4: codes become 128 + twice their value.
struct Fp4Codes : ScaledParts {
  using Panel = Fp4Panel;
  static constexpr int64_t kPanelTokens = 16;
  static constexpr int kStepUnits = 2;
  static constexpr int kSteps = 16;
  static constexpr int kScaleBytes = 1;
  static constexpr bool kOuterScale = false;
  static constexpr int64_t kVectorBytes =
      int64_t{kSteps} * 64 + int64_t{kParts} * kPackLanes * kScaleBytes;
  __m512i table;
  __m512i nibble;

  Fp4Codes() : table(Fp4Table(0)), nibble(_mm512_set1_epi8(15)) {}

  inline __attribute__((always_inline)) void Decode(
      const std::byte* p, Operand (&w)[kStepUnits]) const {
    const __m512i codes = _mm512_loadu_si512(p);
    const __m512i high = _mm512_srli_epi16(codes, 4);
    w[0] = _mm512_shuffle_epi8(table, _mm512_and_si512(codes, nibble));
    w[1] = _mm512_shuffle_epi8(table, _mm512_and_si512(high, nibble));
  }
  static inline __m512 Scale(const std::byte* codes) {
    return HalfScale(E8m0Lanes(codes));
  }
};

// The four parts of a row may be up to 2^3 apart to stand under the smallest
// scale in a byte: 12 * 8 < 128. The shift moves the exponent of what a part
// adds and nothing else: the bits of Fp4Codes, divided by the smallest scale.
constexpr int kMaxShift = 3;

bool CanDecode(const Fp4Codes&, const Block& block) {
  __mmask64 bad = 0;
  const int64_t n = block.width * kPackLanes;  // of one part
  for (int64_t i = 0; i < n; i += kPackLanes) {
    __m128i low = _mm_set1_epi8(-1);
    __m128i high = _mm_setzero_si128();
    for (int64_t p = 0; p < kPartsOfBlock; ++p) {
      const __m128i e = _mm_loadu_si128(
          reinterpret_cast<const __m128i*>(block.scales + p * n + i));
      low = _mm_min_epu8(low, e);
      high = _mm_max_epu8(high, e);
    }
    bad |=
        _mm_cmpgt_epu8_mask(_mm_sub_epi8(high, low), _mm_set1_epi8(kMaxShift));
    // Scales whose half is no normal number, or that no float holds.
    bad |= _mm_cmplt_epu8_mask(low, _mm_set1_epi8(2)) |
           _mm_cmpeq_epu8_mask(high, _mm_set1_epi8(-1));
  }
  return bad == 0;
}

// How 16 rows of a part look up their codes.
struct PartLookup {
  __mmask64 lanes[kMaxShift + 1];  // bytes of rows with this shift
  int most = 0;                    // largest shift of a row

  explicit PartLookup(__m512i shifts) {
    const __m512i bytes =
        _mm512_mullo_epi32(shifts, _mm512_set1_epi32(0x01010101));
    for (int i = 1; i <= kMaxShift; ++i) {
      lanes[i] =
          _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(static_cast<char>(i)));
      if (lanes[i] != 0) most = i;
    }
  }
  inline __m512i Find(const __m512i* tables, __m512i codes) const {
    __m512i w = _mm512_shuffle_epi8(tables[0], codes);
    for (int i = 1; i <= most; ++i) {
      w = _mm512_mask_shuffle_epi8(w, lanes[i], tables[i], codes);
    }
    return w;
  }
};

// The block with its codes decoded to `panel` [32 units, width], and behind
// them the scales.
Block DecodeBlock(const Fp4Codes& format, Block block, std::byte* panel) {
  const int64_t n = block.width * kPackLanes;
  const __m512i tables[kMaxShift + 1] = {Fp4Table(0), Fp4Table(1), Fp4Table(2),
                                         Fp4Table(3)};
  const auto e8m0 = [&](int64_t p, int64_t v) {
    return E8m0Lanes(block.scales + p * n + v * kPackLanes);
  };
  std::byte* scales = panel + 32 * block.width * 64;
  for (int64_t v = 0; v < block.width; ++v) {
    const __m512i low =
        _mm512_min_epu32(_mm512_min_epu32(e8m0(0, v), e8m0(1, v)),
                         _mm512_min_epu32(e8m0(2, v), e8m0(3, v)));
    _mm512_store_ps(scales + v * 64, HalfScale(low));
    for (int64_t p = 0; p < kPartsOfBlock; ++p) {
      const PartLookup lookup(_mm512_sub_epi32(e8m0(p, v), low));
      for (int64_t s = 4 * p; s < 4 * p + 4; ++s) {
        const __m512i codes =
            _mm512_loadu_si512(block.codes + (s * block.width + v) * 64);
        std::byte* out = panel + (2 * s * block.width + v) * 64;
        _mm512_store_si512(
            out, lookup.Find(tables, _mm512_and_si512(codes, format.nibble)));
        _mm512_store_si512(
            out + block.width * 64,
            lookup.Find(tables, _mm512_and_si512(_mm512_srli_epi16(codes, 4),
                                                 format.nibble)));
      }
    }
  }
  block.codes = panel;
  block.scales = scales;
  return block;
}

inline __m512 Larger(const float* x) {
  return _mm512_max_ps(_mm512_abs_ps(_mm512_loadu_ps(x)),
                       _mm512_abs_ps(_mm512_loadu_ps(x + 16)));
}

// Quantises 32 values.
XPart PackPart(const float* x, std::byte* codes) {
  const float amax = _mm512_reduce_max_ps(Larger(x));
  const __m512 factor = _mm512_set1_ps(amax == 0.0f ? 0.0f : 127.0f / amax);
  const __m512i q0 =
      _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), factor));
  const __m512i q1 =
      _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16), factor));
  const __m128i order =
      _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
  auto* const out = reinterpret_cast<__m128i*>(codes);
  _mm_storeu_si128(out, _mm_shuffle_epi8(_mm512_cvtepi32_epi8(q0), order));
  _mm_storeu_si128(out + 1, _mm_shuffle_epi8(_mm512_cvtepi32_epi8(q1), order));
  return {amax / 127.0f,
          -128 * _mm512_reduce_add_epi32(_mm512_add_epi32(q0, q1))};
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
      parts[p] = PackPart(x + at + p * kPartCols, block + p * kPartCols);
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
      return RunFormat<Int8Codes<ScaledParts>>(args);
    case WeightKind::kInt8Wide:
      return RunFormat<Int8Codes<ScaledBlocks>>(args);
    case WeightKind::kFp4:
      return RunFormat<Fp4Codes>(args);
    default:
      return;  // Int8DotMatMul() gives no kernel
  }
}

}  // namespace belay::kernels::avx512

#endif  // __x86_64__
