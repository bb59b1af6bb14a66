// SPDX-License-Identifier: Apache-2.0
// Writing rows of a cache: plain (A2, A3) and packed as FP8 (A5).
#include <algorithm>

#include "aclnnop/aclnn_kv_compress_epilog.h"
#include "aclnnop/aclnn_scatter_nd_update_v2.h"
#include "cannsim/custom/packed_row.h"
#include "cannsim/ops/at.h"

namespace cannsim {
namespace {

// var[indices[i]] = updates[i]. A row with a negative index is padding and is
// passed over (chosen: clients pad slots with -1).
int Scatter(const Arrays& a) {
  const Array& var = a[0];
  const Array& indices = a[1];
  const Array& updates = a[2];
  const int64_t depth = indices.dims.back();
  std::vector<int> inner;
  for (int i = static_cast<int>(depth); i < var.rank(); ++i) inner.push_back(i);
  const Array slice = Only(var, inner);
  const auto rows = RowsOf(indices, 1);
  const auto from = RowsOf(updates, static_cast<int>(inner.size()));
  std::vector<int> last;
  for (size_t i = 0; i < inner.size(); ++i) {
    last.push_back(updates.rank() - static_cast<int>(inner.size() - i));
  }
  const Array update = Only(updates, last);
  for (size_t r = 0; r < rows.size(); ++r) {
    int64_t to = 0;
    bool padding = false;
    for (int64_t i = 0; i < depth; ++i) {
      const auto axis = static_cast<size_t>(i);
      const int64_t index =
          LoadI(indices, rows[r] + i * indices.strides.back());
      if (index >= var.dims[axis]) {
        return IndexOutOfRange("index", index, var.dims[axis]);
      }
      padding = padding || index < 0;
      to += index * var.strides[axis];
    }
    if (padding) continue;
    const bool whole = !IsFloat(var.dtype);
    Walk2(slice, update, [&](int64_t into, int64_t at) {
      if (whole) {
        StoreI(var, to + into, LoadI(updates, from[r] + at));
      } else {
        StoreF(var, to + into, LoadF(updates, from[r] + at));
      }
    });
  }
  return 0;
}

// x [tokens, 512] to rows of 640 bytes; a negative slot is padding.
int Pack(const Arrays& a) {
  const Array& cache = a[0];
  const Array& x = a[1];
  const auto slots = RowsOf(a[2], 0);
  const auto rows = RowsOf(x, 1);
  const int64_t block_size = cache.dims[1];
  for (size_t t = 0; t < rows.size(); ++t) {
    const int64_t slot = LoadI(a[2], slots[t]);
    if (slot < 0) continue;
    if (slot >= cache.dims[0] * block_size) {
      return IndexOutOfRange("slot", slot, cache.dims[0] * block_size);
    }
    PackRow(ReadRow(x, rows[t]),
            cache.base + Place(cache, slot / block_size, slot % block_size));
  }
  return 0;
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnScatterNdUpdateV2GetWorkspaceSize(
    aclTensor* var, const aclTensor* indices, const aclTensor* updates,
    const aclIntArray* varStrides, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnScatterNdUpdateV2", workspaceSize, executor);
  call.OnlyOn({cannsim::Generation::kA2, cannsim::Generation::kA3});
  call.NotNull(var, "var");
  if (!call.ok()) return call.Finish(nullptr);
  // Where strides are given apart they count, whatever the view says.
  aclTensor target = *var;
  if (varStrides != nullptr && !varStrides->values.empty()) {
    call.Require(
        varStrides->values.size() == target.dims.size() &&
            std::all_of(varStrides->values.begin(), varStrides->values.end(),
                        [](int64_t s) { return s >= 0; }),
        "varStrides must have a stride for each axis of var");
    target.strides = varStrides->values;
  }
  call.Out(&target, "var").In(indices, "indices").In(updates, "updates");
  cannsim::NeedsIndex(call, indices, "indices");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(indices->rank() >= 1 && indices->dims.back() >= 1 &&
                   indices->dims.back() <= target.rank(),
               "indices must be [..., n] with n of var's axes");
  call.Require(
      updates->dtype == target.dtype && (cannsim::IsNumber(target.dtype)),
      "var and updates must agree in a plain dtype");
  if (!call.ok()) return call.Finish(nullptr);
  cannsim::Dims shape = cannsim::Leading(indices->dims, 1);
  shape.insert(shape.end(), target.dims.begin() + indices->dims.back(),
               target.dims.end());
  call.Require(updates->dims == shape,
               "updates must have indices' shape and var's last axes");
  return call.Finish(
      [](const cannsim::Arrays& a) { return cannsim::Scatter(a); });
}
CANNSIM_PHASE2(ScatterNdUpdateV2)

aclnnStatus aclnnKvCompressEpilogGetWorkspaceSize(
    aclTensor* cache, const aclTensor* x, const aclTensor* slotMapping,
    int64_t quantGroupSize, int64_t quantMode, int64_t roundScale,
    int64_t layout, int64_t blockStride, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnKvCompressEpilog", workspaceSize, executor);
  call.OnlyOn({cannsim::Generation::kA5});
  call.NotNull(cache, "cache");
  if (!call.ok()) return call.Finish(nullptr);
  const aclTensor target = cannsim::WithFirstStride(*cache, blockStride);
  call.Out(&target, "cache").In(x, "x").In(slotMapping, "slotMapping");
  cannsim::NeedsIndex(call, slotMapping, "slotMapping");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(
      quantGroupSize == 64 && quantMode == 2 && roundScale == 1 && layout == 1,
      "only group 64, quantMode 2, roundScale 1 and layout 1 are "
      "simulated");
  call.Require(target.dtype == ACL_FLOAT8_E4M3FN,
               "cache must be FLOAT8_E4M3FN; E5M2 is not simulated");
  call.Require(
      (target.rank() == 3 || (target.rank() == 4 && target.dims[2] == 1)) &&
          target.dims.back() == cannsim::kPackedBytes &&
          target.strides.back() == 1,
      "cache must be [blocks, block, 1, 640] with whole rows");
  call.Require(
      x->dtype == ACL_BF16 && x->rank() >= 2 &&
          x->dims.back() == cannsim::kRowDim &&
          x->n_elements() / cannsim::kRowDim == slotMapping->n_elements(),
      "x must be BF16 [tokens, 512] with a slot for each token");
  return call.Finish([](const cannsim::Arrays& a) { return cannsim::Pack(a); });
}
CANNSIM_PHASE2(KvCompressEpilog)

}  // extern "C"
