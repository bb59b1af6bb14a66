// SPDX-License-Identifier: Apache-2.0
// Conversions and quantisation of rows of floats; bit-exact with
// base/float_formats.h for finite input. Arrays need no alignment.
// Source of the rules: DeepSeek-V4 inference/kernel.py (act_quant,
// fp4_act_quant); see base/float_formats.h.
#ifndef BELAY_KERNELS_QUANTIZE_H_
#define BELAY_KERNELS_QUANTIZE_H_

#include <cstddef>
#include <cstdint>

namespace belay::kernels {

// y[i] = float32 of bf16 x[i], i < n.
void Bf16ToF32(const uint16_t* x, size_t n, float* y);
// y[i] = bf16 of x[i], to nearest even; NaN stays NaN.
void F32ToBf16(const float* x, size_t n, uint16_t* y);
// x[i] = the float32 nearest to x[i] among the bf16 numbers, in place.
void RoundToBf16(float* x, size_t n);

// act_quant and back: per block of `block` values (the last may be short) s =
// 2^k from the largest magnitude, y = e4m3(x / s) * s, which float32 and bf16
// hold exactly. y may be x. `block` is a multiple of 16.
void QuantizeE4m3(const float* x, size_t n, size_t block, float* y);
// fp4_act_quant and back, in the same way with e2m1.
void QuantizeE2m1(const float* x, size_t n, size_t block, float* y);

// The codes and e8m0 scales of act_quant: codes [n], scales [n / group].
void EncodeE4m3(const float* x, size_t n, size_t group, uint8_t* codes,
                uint8_t* scales);
// y = code * scale, exact.
void DecodeE4m3(const uint8_t* codes, const uint8_t* scales, size_t n,
                size_t group, float* y);
// The packed codes [n / 2] and e8m0 scales [n / group] of fp4_act_quant.
void EncodeE2m1(const float* x, size_t n, size_t group, uint8_t* codes,
                uint8_t* scales);
// y = code * scale, exact; `group` is a multiple of 32.
void DecodeE2m1(const uint8_t* codes, const uint8_t* scales, size_t n,
                size_t group, float* y);

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_QUANTIZE_H_
