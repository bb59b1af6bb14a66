// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512/matmul_avx512.h"

#if defined(__x86_64__)

#include "kernels/avx512/formats-inl.h"
#include "kernels/avx512/tiles-inl.h"

namespace belay::kernels::avx512 {

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
