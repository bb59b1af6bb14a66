// SPDX-License-Identifier: Apache-2.0
#include "support/in_process_ranks.h"

#include <cstring>

#include "base/float_formats.h"

namespace belay::test {

void InProcessRank::AllReduceSum(TensorView x) {
  BELAY_CHECK(x.is_contiguous());
  BELAY_CHECK(x.dtype() == DType::kF32 || x.dtype() == DType::kBF16);
  const bool is_f32 = x.dtype() == DType::kF32;
  meeting_.parts[static_cast<size_t>(rank_)] = x;
  meeting_.barrier.arrive_and_wait();
  std::vector<float> sum(static_cast<size_t>(x.n_elements()));
  for (const ConstTensorView& part : meeting_.parts) {
    BELAY_CHECK(part.shape() == x.shape() && part.dtype() == x.dtype());
    for (size_t i = 0; i < sum.size(); ++i) {
      sum[i] +=
          is_f32 ? part.as<float>()[i] : F32FromBf16(part.as<uint16_t>()[i]);
    }
  }
  // Nobody overwrites what another still reads.
  meeting_.barrier.arrive_and_wait();
  for (size_t i = 0; i < sum.size(); ++i) {
    if (is_f32) {
      x.as<float>()[i] = sum[i];
    } else {
      x.as<uint16_t>()[i] = Bf16FromF32(sum[i]);
    }
  }
}

void InProcessRank::AllGatherColumns(ConstTensorView local, TensorView out) {
  BELAY_CHECK(out.dim(1) == local.dim(1) * n_ranks());
  meeting_.parts[static_cast<size_t>(rank_)] = local;
  meeting_.barrier.arrive_and_wait();
  for (int64_t r = 0; r < out.n_rows(); ++r) {
    std::byte* to = out.row<std::byte>(r);
    for (const ConstTensorView& part : meeting_.parts) {
      std::memcpy(to, part.row<std::byte>(r), part.row_bytes());
      to += part.row_bytes();
    }
  }
  meeting_.barrier.arrive_and_wait();
}

}  // namespace belay::test
