// SPDX-License-Identifier: Apache-2.0
// The operators that we call: the arguments of their first phase, without the
// size of the workspace and the executor. Facts of the interface, with their
// sources in data/abi; scripts/abi/make_api_check.py holds them to it.
#ifndef BELAY_CANN_API_ABI_OPERATORS_H_
#define BELAY_CANN_API_ABI_OPERATORS_H_

#include "cann_api/abi/types.h"

// X(name, (arguments)): aclnn<name>GetWorkspaceSize and aclnn<name>.
// clang-format off
#define BELAY_ACLNN_OPERATORS(X) \
  X(Abs, (const aclTensor*, aclTensor*)) \
  X(Add, (const aclTensor*, const aclTensor*, const aclScalar*, aclTensor*)) \
  X(ArgMax, (const aclTensor*, int64_t, bool, aclTensor*)) \
  X(Argsort, (const aclTensor*, int64_t, bool, aclTensor*)) \
  X(BatchMatMul, (const aclTensor*, const aclTensor*, aclTensor*, int8_t)) \
  X(Cast, (const aclTensor*, const aclDataType, aclTensor*)) \
  X(Clamp, (const aclTensor*, const aclScalar*, const aclScalar*, aclTensor*)) \
  X(ClampMin, (const aclTensor*, const aclScalar*, aclTensor*)) \
  X(Cos, (const aclTensor*, aclTensor*)) \
  X(Cumsum, (const aclTensor*, int64_t, aclDataType, aclTensor*)) \
  X(Div, (const aclTensor*, const aclTensor*, aclTensor*)) \
  X(EqTensor, (const aclTensor*, const aclTensor*, aclTensor*)) \
  X(Exp, (const aclTensor*, aclTensor*)) \
  X(GatherV2, (const aclTensor*, int64_t, const aclTensor*, aclTensor*)) \
  X(GroupedMatmulV4, (const aclTensorList*, const aclTensorList*, const aclTensorList*, const aclTensorList*, const aclTensorList*, const aclTensorList*, const aclTensorList*, const aclTensorList*, const aclTensor*, const aclTensorList*, const aclTensorList*, const aclTensorList*, int64_t, int64_t, int64_t, int64_t, aclTensorList*, aclTensorList*, aclTensorList*)) \
  X(GtScalar, (const aclTensor*, const aclScalar*, aclTensor*)) \
  X(InplaceAdd, (const aclTensor*, const aclTensor*, const aclScalar*)) \
  X(InplaceAdds, (const aclTensor*, const aclScalar*, const aclScalar*)) \
  X(InplaceFillScalar, (aclTensor*, const aclScalar*)) \
  X(InplaceIndexCopy, (aclTensor*, int64_t, const aclTensor*, const aclTensor*)) \
  X(InplaceMul, (aclTensor*, const aclTensor*)) \
  X(InplaceMuls, (aclTensor*, const aclScalar*)) \
  X(InplaceThreshold, (aclTensor*, const aclScalar*, const aclScalar*)) \
  X(InplaceZero, (aclTensor*)) \
  X(Matmul, (const aclTensor*, const aclTensor*, aclTensor*, int8_t)) \
  X(Mean, (const aclTensor*, const aclIntArray*, bool, aclDataType, aclTensor*)) \
  X(Mul, (const aclTensor*, const aclTensor*, aclTensor*)) \
  X(Muls, (const aclTensor*, const aclScalar*, aclTensor*)) \
  X(Neg, (const aclTensor*, aclTensor*)) \
  X(ReduceSum, (const aclTensor*, const aclIntArray*, bool, aclDataType, aclTensor*)) \
  X(RmsNorm, (const aclTensor*, const aclTensor*, double, const aclTensor*, const aclTensor*)) \
  X(RotaryPositionEmbedding, (const aclTensor*, const aclTensor*, const aclTensor*, int64_t, aclTensor*)) \
  X(Sigmoid, (const aclTensor*, aclTensor*)) \
  X(Silu, (const aclTensor*, aclTensor*)) \
  X(Sin, (const aclTensor*, aclTensor*)) \
  X(Softmax, (const aclTensor*, int64_t, aclTensor*)) \
  X(Softplus, (const aclTensor*, const aclScalar*, const aclScalar*, aclTensor*)) \
  X(Sqrt, (const aclTensor*, aclTensor*)) \
  X(Sub, (const aclTensor*, const aclTensor*, const aclScalar*, aclTensor*)) \
  X(Topk, (const aclTensor*, int64_t, int64_t, bool, bool, aclTensor*, aclTensor*))

// The same for operators that we do without where they are missing.
#define BELAY_ACLNN_OPTIONAL_OPERATORS(X) \
  X(HcPost, (const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*)) \
  X(HcPreInvRms, (const aclTensor*, double, const aclTensor*)) \
  X(HcPreSinkhorn, (const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*, const aclTensor*, int64_t, int64_t, double, const aclTensor*, const aclTensor*, const aclTensor*))
// clang-format on

#endif  // BELAY_CANN_API_ABI_OPERATORS_H_
