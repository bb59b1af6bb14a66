// SPDX-License-Identifier: Apache-2.0
// act_quant and fp4_act_quant of the official kernel.py, as operators that
// every generation has. Bit for bit the official numbers: all steps are exact.
#ifndef BELAY_BACKENDS_CANN_QUANT_H_
#define BELAY_BACKENDS_CANN_QUANT_H_

#include "backends/cann/device/compute.h"

namespace belay::cann {

// The code that values are rounded to.
enum class Code : uint8_t { kE4m3, kE2m1 };

// out = code(x / s) * s with the scale s of each `group` of the last axis. x
// and out [n_rows, n] BF16, rows may be strided; out may be x.
void QuantDequant(Compute& c, const Array& out, const Array& x, int64_t group,
                  Code code);

}  // namespace belay::cann

#endif  // BELAY_BACKENDS_CANN_QUANT_H_
