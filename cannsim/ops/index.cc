// SPDX-License-Identifier: Apache-2.0
// Rows by index. An index out of range fails when the operator runs, as an AI
// core's exception: the check costs a card too much in phase 1.
#include <fmt/format.h>

#include "aclnnop/aclnn_gather_v2.h"
#include "aclnnop/aclnn_index_copy.h"
#include "aclnnop/aclnn_index_fill_tensor.h"
#include "aclnnop/aclnn_index_select.h"
#include "cannsim/ops/define.h"

namespace cannsim {
namespace {

int OutOfRange(int64_t index, int64_t n) {
  return cannsim_fail(
      ACL_ERROR_RT_AICORE_EXCEPTION,
      fmt::format("index {} is not in [0, {})", index, n).c_str());
}

// One slice of an array across an axis.
Array SliceAt(const Array& array, size_t axis, int64_t at) {
  Array slice = Without(array, {static_cast<int>(axis)});
  const auto bytes = static_cast<int64_t>(aclDataTypeSize(array.dtype));
  slice.base += at * array.strides[axis] * bytes;
  return slice;
}

void CopySlice(const Array& out, const Array& in) {
  const bool whole = !IsFloat(in.dtype);
  Walk2(out, in, [&](int64_t to, int64_t from) {
    if (whole) {
      StoreI(out, to, LoadI(in, from));
    } else {
      StoreF(out, to, LoadF(in, from));
    }
  });
}

// out has index's shape in the place of self's axis.
aclnnStatus Select(Phase1& call, const aclTensor* self, int64_t dim,
                   const aclTensor* index, const aclTensor* out) {
  call.In(self, "self").In(index, "index").Out(out, "out");
  NeedsNumber(call, self, "self");
  NeedsIndex(call, index, "index");
  if (!call.ok()) return call.Finish(nullptr);
  const int axis = FrontAxis(dim, self->rank());
  call.Require(axis >= 0 && self->rank() > 0, "dim does not exist");
  call.Require(self->dtype == out->dtype, "self and out differ in dtype");
  if (!call.ok()) return call.Finish(nullptr);
  Dims shape(self->dims.begin(), self->dims.begin() + axis);
  shape.insert(shape.end(), index->dims.begin(), index->dims.end());
  shape.insert(shape.end(), self->dims.begin() + axis + 1, self->dims.end());
  call.Require(shape == out->dims,
               "out is not self's shape with index's in the place of dim");
  return call.Finish([axis](const Arrays& a) {
    const auto i = static_cast<size_t>(axis);
    std::vector<int> axes;
    for (int k = 0; k < a[1].rank(); ++k) axes.push_back(axis + k);
    const Array rows = Only(a[2], axes);
    const Array row = Without(a[2], axes);
    const auto bytes = static_cast<int64_t>(aclDataTypeSize(row.dtype));
    int code = 0;
    Walk2(rows, a[1], [&](int64_t to, int64_t at) {
      const int64_t index_here = LoadI(a[1], at);
      if (index_here < 0 || index_here >= a[0].dims[i]) {
        code = OutOfRange(index_here, a[0].dims[i]);
        return;
      }
      Array here = row;
      here.base += to * bytes;
      CopySlice(here, SliceAt(a[0], i, index_here));
    });
    return code;
  });
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnGatherV2GetWorkspaceSize(const aclTensor* self, int64_t dim,
                                          const aclTensor* index,
                                          aclTensor* out,
                                          uint64_t* workspaceSize,
                                          aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnGatherV2", workspaceSize, executor);
  return cannsim::Select(call, self, dim, index, out);
}
CANNSIM_PHASE2(GatherV2)

aclnnStatus aclnnIndexSelectGetWorkspaceSize(const aclTensor* self, int64_t dim,
                                             const aclTensor* index,
                                             aclTensor* out,
                                             uint64_t* workspaceSize,
                                             aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnIndexSelect", workspaceSize, executor);
  if (index != nullptr) {
    call.Require(index->rank() <= 1, "index has more than one axis");
  }
  return cannsim::Select(call, self, dim, index, out);
}
CANNSIM_PHASE2(IndexSelect)

aclnnStatus aclnnInplaceIndexCopyGetWorkspaceSize(aclTensor* selfRef,
                                                  int64_t dim,
                                                  const aclTensor* index,
                                                  const aclTensor* source,
                                                  uint64_t* workspaceSize,
                                                  aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplaceIndexCopy", workspaceSize, executor);
  call.In(source, "source").In(index, "index").Out(selfRef, "selfRef");
  cannsim::NeedsNumber(call, selfRef, "selfRef");
  cannsim::NeedsIndex(call, index, "index");
  if (!call.ok()) return call.Finish(nullptr);
  const int axis = cannsim::FrontAxis(dim, selfRef->rank());
  call.Require(axis >= 0 && selfRef->rank() > 0 && index->rank() == 1,
               "dim does not exist, or index has not one axis");
  if (!call.ok()) return call.Finish(nullptr);
  cannsim::Dims shape = selfRef->dims;
  shape[static_cast<size_t>(axis)] = index->dims[0];
  call.Require(shape == source->dims && source->dtype == selfRef->dtype,
               "source is not selfRef's dtype and shape with one slice an "
               "index");
  return call.Finish([axis](const cannsim::Arrays& a) {
    const auto i = static_cast<size_t>(axis);
    for (int64_t k = 0; k < a[1].dims[0]; ++k) {
      const int64_t to = cannsim::LoadI(a[1], k * a[1].strides[0]);
      if (to < 0 || to >= a[2].dims[i]) {
        return cannsim::OutOfRange(to, a[2].dims[i]);
      }
      cannsim::CopySlice(cannsim::SliceAt(a[2], i, to),
                         cannsim::SliceAt(a[0], i, k));
    }
    return 0;
  });
}
CANNSIM_PHASE2(InplaceIndexCopy)

aclnnStatus aclnnInplaceIndexFillTensorGetWorkspaceSize(
    aclTensor* selfRef, int64_t dim, const aclIntArray* index,
    const aclScalar* value, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplaceIndexFillTensor", workspaceSize, executor);
  call.Out(selfRef, "selfRef").NotNull(index, "index").NotNull(value, "value");
  cannsim::NeedsNumber(call, selfRef, "selfRef");
  if (!call.ok()) return call.Finish(nullptr);
  const int axis = cannsim::FrontAxis(dim, selfRef->rank());
  call.Require(axis >= 0 && selfRef->rank() > 0, "dim does not exist");
  if (!call.ok()) return call.Finish(nullptr);
  const auto i = static_cast<size_t>(axis);
  for (const int64_t at : index->values) {
    call.Require(at >= 0 && at < selfRef->dims[i], "an index is out of range");
  }
  return call.Finish([i, rows = index->values,
                      x = cannsim::ScalarF(value)](const cannsim::Arrays& a) {
    for (const int64_t at : rows) {
      const cannsim::Array slice = cannsim::SliceAt(a[0], i, at);
      cannsim::Walk1(slice, [&](int64_t to) { cannsim::StoreF(slice, to, x); });
    }
    return 0;
  });
}
CANNSIM_PHASE2(InplaceIndexFillTensor)

}  // extern "C"
