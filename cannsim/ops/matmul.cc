// SPDX-License-Identifier: Apache-2.0
// Products of matrices, summed in double precision.
#include <algorithm>
#include <cmath>

#include "aclnnop/aclnn_batch_matmul.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_mm.h"
#include "aclnnop/aclnn_mv.h"
#include "aclnnop/aclnn_trans_matmul_weight.h"
#include "cannsim/ops/define.h"

namespace cannsim {
namespace {

enum CubeMath { kKeep = 0, kDown = 1, kFp16 = 2, kHf32 = 3 };

// What the cube unit makes of an FLOAT input: USE_FP16 rounds it to FP16
// before the product, HF32 to 11 bits of significand.
double CubeInput(double x, aclDataType dtype, int8_t cube_math) {
  if (dtype != ACL_FLOAT || cube_math == kKeep) return x;
  if (cube_math == kFp16) return RoundTo(ACL_FLOAT16, x);
  if (cube_math == kHf32 || cube_math == kDown) {
    int exponent = 0;
    const double half = std::frexp(x, &exponent);
    return std::isfinite(x) && x != 0
               ? std::ldexp(std::nearbyint(std::ldexp(half, 12)), exponent - 12)
               : x;
  }
  return x;
}

// [m, k] x [k, n] at given first elements.
struct Matrices {
  const Array& a;
  const Array& b;
  const Array& out;
  int8_t cube_math;
};

struct Steps {
  int64_t row;
  int64_t column;
};

Steps LastTwo(const Array& array) {
  const size_t rank = array.strides.size();
  return {array.strides[rank - 2], array.strides[rank - 1]};
}

void Multiply(const Matrices& m, const std::array<int64_t, 3>& first) {
  const Steps a = LastTwo(m.a);
  const Steps b = LastTwo(m.b);
  const Steps out = LastTwo(m.out);
  const int64_t n_rows = m.out.dims[m.out.dims.size() - 2];
  const int64_t n_columns = m.out.dims.back();
  const int64_t n_inner = m.a.dims.back();
  // One row of the left side and the right side as doubles, read once.
  std::vector<double> right(static_cast<size_t>(n_inner * n_columns));
  for (int64_t k = 0; k < n_inner; ++k) {
    for (int64_t j = 0; j < n_columns; ++j) {
      right[static_cast<size_t>(k * n_columns + j)] =
          CubeInput(LoadF(m.b, first[1] + k * b.row + j * b.column), m.b.dtype,
                    m.cube_math);
    }
  }
  std::vector<double> sums(static_cast<size_t>(n_columns));
  for (int64_t i = 0; i < n_rows; ++i) {
    sums.assign(sums.size(), 0);
    for (int64_t k = 0; k < n_inner; ++k) {
      const double x =
          CubeInput(LoadF(m.a, first[0] + i * a.row + k * a.column), m.a.dtype,
                    m.cube_math);
      const double* row = right.data() + k * n_columns;
      for (int64_t j = 0; j < n_columns; ++j) {
        sums[static_cast<size_t>(j)] += x * row[j];
      }
    }
    for (int64_t j = 0; j < n_columns; ++j) {
      StoreF(m.out, first[2] + i * out.row + j * out.column,
             sums[static_cast<size_t>(j)]);
    }
  }
}

// All matrices of a batch whose leading axes broadcast.
int MultiplyAll(const Arrays& arrays, int8_t cube_math) {
  const Matrices m{arrays[0], arrays[1], arrays[2], cube_math};
  const int rank = m.out.rank();
  const auto batch_of = [](const Array& array) {
    return Without(array, {array.rank() - 2, array.rank() - 1});
  };
  const Array out = batch_of(m.out);
  if (rank >= 2 && m.out.n_elements() == 0) return 0;
  Walk<3>(out.dims,
          {StepsFor(batch_of(m.a), out.dims), StepsFor(batch_of(m.b), out.dims),
           out.strides},
          [&](const std::array<int64_t, 3>& first) { Multiply(m, first); });
  return 0;
}

void CheckDtypes(Phase1& call, const aclTensor* a, const aclTensor* b,
                 const aclTensor* out, int8_t cube_math) {
  call.In(a, "self").In(b, "mat2").Out(out, "out");
  NeedsFloat(call, a, "self");
  NeedsFloat(call, b, "mat2");
  NeedsFloat(call, out, "out");
  call.Require(cube_math >= kKeep && cube_math <= kHf32,
               "cubeMathType must be 0 to 3");
}

struct RankLimits {
  int min;
  int max;
};

aclnnStatus MatMul(Phase1& call, const aclTensor* a, const aclTensor* b,
                   const aclTensor* out, int8_t cube_math, RankLimits limits) {
  CheckDtypes(call, a, b, out, cube_math);
  if (!call.ok()) return call.Finish(nullptr);
  const bool ranks = a->rank() >= limits.min && a->rank() <= limits.max &&
                     b->rank() >= limits.min && b->rank() <= limits.max &&
                     out->rank() == std::max(a->rank(), b->rank());
  call.Require(ranks, "the ranks of self, mat2 and out do not fit");
  if (!call.ok()) return call.Finish(nullptr);
  const Dims batch_a(a->dims.begin(), a->dims.end() - 2);
  const Dims batch_b(b->dims.begin(), b->dims.end() - 2);
  Dims shape;
  const bool fits = Broadcast(batch_a, batch_b, &shape) &&
                    a->dims.back() == b->dims[b->dims.size() - 2];
  call.Require(fits,
               "the inner axes of self and mat2 differ, or their batch "
               "axes do not broadcast");
  shape.push_back(a->dims[a->dims.size() - 2]);
  shape.push_back(b->dims.back());
  call.Require(shape == out->dims, "out has another shape than the product");
  return call.Finish([cube_math](const Arrays& arrays) {
    return MultiplyAll(arrays, cube_math);
  });
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnMmGetWorkspaceSize(const aclTensor* self,
                                    const aclTensor* mat2, aclTensor* out,
                                    int8_t cubeMathType,
                                    uint64_t* workspaceSize,
                                    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnMm", workspaceSize, executor);
  return cannsim::MatMul(call, self, mat2, out, cubeMathType, {2, 2});
}
CANNSIM_PHASE2(Mm)

aclnnStatus aclnnBatchMatMulGetWorkspaceSize(
    const aclTensor* self, const aclTensor* mat2, aclTensor* out,
    int8_t cubeMathType, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnBatchMatMul", workspaceSize, executor);
  return cannsim::MatMul(call, self, mat2, out, cubeMathType, {3, 3});
}
CANNSIM_PHASE2(BatchMatMul)

aclnnStatus aclnnMatmulGetWorkspaceSize(const aclTensor* self,
                                        const aclTensor* mat2, aclTensor* out,
                                        int8_t cubeMathType,
                                        uint64_t* workspaceSize,
                                        aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnMatmul", workspaceSize, executor);
  return cannsim::MatMul(call, self, mat2, out, cubeMathType, {2, 8});
}
CANNSIM_PHASE2(Matmul)

aclnnStatus aclnnMvGetWorkspaceSize(const aclTensor* self, const aclTensor* vec,
                                    aclTensor* out, int8_t cubeMathType,
                                    uint64_t* workspaceSize,
                                    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnMv", workspaceSize, executor);
  cannsim::CheckDtypes(call, self, vec, out, cubeMathType);
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(self->rank() == 2 && vec->rank() == 1 && out->rank() == 1 &&
                   self->dims[1] == vec->dims[0] &&
                   self->dims[0] == out->dims[0],
               "a [m, n] matrix, an [n] vector and an [m] result are needed");
  return call.Finish([cubeMathType](const cannsim::Arrays& a) {
    cannsim::Arrays as_matrices = a;
    for (const size_t i : {1, 2}) {
      as_matrices[i].dims.push_back(1);
      as_matrices[i].strides.push_back(1);
    }
    return cannsim::MultiplyAll(as_matrices, cubeMathType);
  });
}
CANNSIM_PHASE2(Mv)

// The bytes stay as they are: clients declare weights in the NZ format with the
// strides of a plain matrix, and the products above read them so.
aclnnStatus aclnnTransMatmulWeightGetWorkspaceSize(aclTensor* mmWeightRef,
                                                   uint64_t* workspaceSize,
                                                   aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnTransMatmulWeight", workspaceSize, executor);
  call.In(mmWeightRef, "mmWeightRef");
  return call.Finish([](const cannsim::Arrays&) { return 0; });
}
CANNSIM_PHASE2(TransMatmulWeight)

aclnnStatus aclnnCalculateMatmulWeightSizeV2(const aclIntArray* tensorShape,
                                             aclDataType dataType,
                                             uint64_t* weightTensorSize) {
  if (tensorShape == nullptr || weightTensorSize == nullptr) {
    return cannsim_fail(ACLNN_ERR_PARAM_NULLPTR,
                        "aclnnCalculateMatmulWeightSizeV2: null argument");
  }
  if (aclDataTypeSize(dataType) == 0) {
    return cannsim_fail(ACLNN_ERR_PARAM_INVALID,
                        "aclnnCalculateMatmulWeightSizeV2: this dtype has no "
                        "size");
  }
  // Elements, not bytes: nothing is padded here (see above).
  uint64_t n = 1;
  for (const int64_t dim : tensorShape->values) n *= static_cast<uint64_t>(dim);
  *weightTensorSize = n;
  return ACLNN_SUCCESS;
}

}  // extern "C"
