// SPDX-License-Identifier: Apache-2.0
// One element of any dtype as a double or a 64-bit integer, and back with one
// rounding to nearest even. Slow and plain: operators here say what CANN's
// operators mean, and share nothing with the back ends that they test.
#ifndef BELAY_CANNSIM_OPS_ELEMENT_H_
#define BELAY_CANNSIM_OPS_ELEMENT_H_

#include <cstdint>

#include "cannsim/nnop/executor.h"

namespace cannsim {

bool IsFloat(aclDataType dtype);    // FLOAT, FLOAT16, BF16, DOUBLE
bool IsInteger(aclDataType dtype);  // of 8 to 64 bits, signed or not
bool IsNumber(aclDataType dtype);   // either, or BOOL

// `at` counts elements from the array's first. Knows the dtypes above, FP8 in
// E4M3 and E5M2, FP4 in E2M1 (saturating), E8M0 and, as an integer, INT4.
double LoadF(const Array& array, int64_t at);
void StoreF(const Array& array, int64_t at, double value);
// For integers and BOOL: exact where a double is not.
int64_t LoadI(const Array& array, int64_t at);
void StoreI(const Array& array, int64_t at, int64_t value);

// `value` rounded to the numbers of a dtype.
double RoundTo(aclDataType dtype, double value);

double ScalarF(const aclScalar* scalar);

// What two dtypes become together (PyTorch's rule).
aclDataType Promote(aclDataType a, aclDataType b);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_OPS_ELEMENT_H_
