// SPDX-License-Identifier: Apache-2.0
// Elements in other places: transposed, cut, joined, repeated, rolled, padded.
#include <algorithm>

#include "aclnnop/aclnn_cat.h"
#include "aclnnop/aclnn_constant_pad_nd.h"
#include "aclnnop/aclnn_permute.h"
#include "aclnnop/aclnn_reflection_pad1d.h"
#include "aclnnop/aclnn_repeat.h"
#include "aclnnop/aclnn_repeat_interleave.h"
#include "aclnnop/aclnn_roll.h"
#include "aclnnop/aclnn_slice.h"
#include "aclnnop/aclnn_tril.h"
#include "aclnnop/aclnn_triu.h"
#include "cannsim/ops/define.h"

namespace cannsim {
namespace {

void CopyElement(const Array& out, int64_t to, const Array& in, int64_t from) {
  if (IsFloat(in.dtype)) {
    StoreF(out, to, LoadF(in, from));
  } else {
    StoreI(out, to, LoadI(in, from));
  }
}

// Goes through the output; where(index of the output) gives the index of the
// input, or false for `fill`.
template <typename Where>
Kernel Gather(Where where, double fill = 0) {
  return [where, fill](const Arrays& a) {
    const Array& in = a[0];
    const Array& out = a[1];
    Dims index(out.dims.size(), 0);
    Dims source(in.dims.size(), 0);
    Walk1(out, [&](int64_t to) {
      if (where(index, in.dims, &source)) {
        int64_t from = 0;
        for (size_t i = 0; i < source.size(); ++i) {
          from += source[i] * in.strides[i];
        }
        CopyElement(out, to, in, from);
      } else {
        StoreF(out, to, fill);
      }
      for (size_t i = index.size(); i-- > 0;) {
        if (++index[i] < out.dims[i]) break;
        index[i] = 0;
      }
    });
    return 0;
  };
}

void CheckSame(Phase1& call, const aclTensor* self, const aclTensor* out) {
  call.In(self, "self").Out(out, "out");
  NeedsNumber(call, self, "self");
  if (call.ok()) {
    call.Require(self->dtype == out->dtype, "self and out differ in dtype");
  }
}

// Keeps one side of the diagonal of the last two axes.
aclnnStatus Triangle(Phase1& call, const aclTensor* self, const aclTensor* out,
                     int64_t diagonal, bool upper) {
  CheckSame(call, self, out);
  SameShape(call, self, out, "self and out");
  if (call.ok()) call.Require(self->rank() >= 2, "self has fewer than 2 axes");
  return call.Finish(
      Gather([diagonal, upper](const Dims& index, const Dims&, Dims* source) {
        *source = index;
        const int64_t distance = index.back() - index[index.size() - 2];
        return upper ? distance >= diagonal : distance <= diagonal;
      }));
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnPermuteGetWorkspaceSize(const aclTensor* self,
                                         const aclIntArray* dims,
                                         aclTensor* out,
                                         uint64_t* workspaceSize,
                                         aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnPermute", workspaceSize, executor);
  cannsim::CheckSame(call, self, out);
  call.NotNull(dims, "dims");
  if (!call.ok()) return call.Finish(nullptr);
  std::vector<int64_t> order = dims->values;
  std::vector<int64_t> sorted;
  for (int64_t& axis : order) {
    axis = cannsim::FrontAxis(axis, self->rank());
    sorted.push_back(axis);
  }
  std::sort(sorted.begin(), sorted.end());
  bool fits = static_cast<int>(order.size()) == self->rank() &&
              out->rank() == self->rank();
  for (size_t i = 0; fits && i < order.size(); ++i) {
    fits = sorted[i] == static_cast<int64_t>(i) &&
           out->dims[i] == self->dims[static_cast<size_t>(order[i])];
  }
  call.Require(fits,
               "dims is no order of self's axes, or out is not of the "
               "shape that it gives");
  return call.Finish(
      cannsim::Gather([order](const cannsim::Dims& index, const cannsim::Dims&,
                              cannsim::Dims* source) {
        for (size_t i = 0; i < order.size(); ++i) {
          (*source)[static_cast<size_t>(order[i])] = index[i];
        }
        return true;
      }));
}
CANNSIM_PHASE2(Permute)

aclnnStatus aclnnSliceGetWorkspaceSize(const aclTensor* self, int64_t dim,
                                       int64_t start, int64_t end, int64_t step,
                                       aclTensor* out, uint64_t* workspaceSize,
                                       aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnSlice", workspaceSize, executor);
  cannsim::CheckSame(call, self, out);
  call.Require(step > 0, "step must be positive");
  if (!call.ok()) return call.Finish(nullptr);
  const int axis = cannsim::FrontAxis(dim, self->rank());
  call.Require(axis >= 0 && self->rank() > 0, "dim does not exist");
  if (!call.ok()) return call.Finish(nullptr);
  const auto i = static_cast<size_t>(axis);
  const int64_t n = self->dims[i];
  const int64_t from = std::clamp(start < 0 ? start + n : start, int64_t{0}, n);
  const int64_t to = std::clamp(end < 0 ? end + n : end, from, n);
  cannsim::Dims shape = self->dims;
  shape[i] = (to - from + step - 1) / step;
  call.Require(shape == out->dims, "out is not of the shape of the slice");
  return call.Finish(cannsim::Gather([i, from, step](const cannsim::Dims& index,
                                                     const cannsim::Dims&,
                                                     cannsim::Dims* source) {
    *source = index;
    (*source)[i] = from + index[i] * step;
    return true;
  }));
}
CANNSIM_PHASE2(Slice)

aclnnStatus aclnnRepeatGetWorkspaceSize(const aclTensor* self,
                                        const aclIntArray* repeats,
                                        aclTensor* out, uint64_t* workspaceSize,
                                        aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnRepeat", workspaceSize, executor);
  cannsim::CheckSame(call, self, out);
  call.NotNull(repeats, "repeats");
  if (!call.ok()) return call.Finish(nullptr);
  const std::vector<int64_t>& n = repeats->values;
  bool fits = n.size() == out->dims.size() && n.size() >= self->dims.size();
  const size_t added = fits ? n.size() - self->dims.size() : 0;
  for (size_t i = 0; fits && i < n.size(); ++i) {
    const int64_t dim = i < added ? 1 : self->dims[i - added];
    fits = n[i] >= 0 && out->dims[i] == dim * n[i];
  }
  call.Require(fits, "out is not self's shape times repeats");
  return call.Finish(cannsim::Gather([added](const cannsim::Dims& index,
                                             const cannsim::Dims& dims,
                                             cannsim::Dims* source) {
    for (size_t i = 0; i < dims.size(); ++i) {
      (*source)[i] = index[added + i] % dims[i];
    }
    return true;
  }));
}
CANNSIM_PHASE2(Repeat)

aclnnStatus aclnnRepeatInterleaveIntWithDimGetWorkspaceSize(
    const aclTensor* self, int64_t repeats, int64_t dim, int64_t outputSize,
    aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnRepeatInterleaveIntWithDim", workspaceSize,
                       executor);
  cannsim::CheckSame(call, self, out);
  call.Require(repeats > 0, "repeats must be positive");
  if (!call.ok()) return call.Finish(nullptr);
  const int axis = cannsim::FrontAxis(dim, self->rank());
  call.Require(axis >= 0 && self->rank() > 0, "dim does not exist");
  if (!call.ok()) return call.Finish(nullptr);
  const auto i = static_cast<size_t>(axis);
  cannsim::Dims shape = self->dims;
  shape[i] *= repeats;
  call.Require(shape == out->dims && shape[i] == outputSize,
               "out or outputSize is not self's shape with the axis repeated");
  return call.Finish(cannsim::Gather([i, repeats](const cannsim::Dims& index,
                                                  const cannsim::Dims&,
                                                  cannsim::Dims* source) {
    *source = index;
    (*source)[i] = index[i] / repeats;
    return true;
  }));
}
CANNSIM_PHASE2(RepeatInterleaveIntWithDim)

aclnnStatus aclnnRollGetWorkspaceSize(const aclTensor* x,
                                      const aclIntArray* shifts,
                                      const aclIntArray* dims, aclTensor* out,
                                      uint64_t* workspaceSize,
                                      aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnRoll", workspaceSize, executor);
  cannsim::CheckSame(call, x, out);
  cannsim::SameShape(call, x, out, "x and out");
  call.NotNull(shifts, "shifts").NotNull(dims, "dims");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(
      !dims->values.empty() && shifts->values.size() == dims->values.size(),
      "shifts and dims must be of one length, and not empty");
  cannsim::Dims by(x->dims.size(), 0);
  for (size_t i = 0; call.ok() && i < dims->values.size(); ++i) {
    const int axis = cannsim::FrontAxis(dims->values[i], x->rank());
    call.Require(axis >= 0 && x->rank() > 0, "an axis of dims does not exist");
    if (call.ok()) by[static_cast<size_t>(axis)] += shifts->values[i];
  }
  return call.Finish(
      cannsim::Gather([by](const cannsim::Dims& index,
                           const cannsim::Dims& shape, cannsim::Dims* source) {
        for (size_t i = 0; i < index.size(); ++i) {
          const int64_t n = shape[i];
          (*source)[i] = ((index[i] - by[i]) % n + n) % n;
        }
        return true;
      }));
}
CANNSIM_PHASE2(Roll)

aclnnStatus aclnnConstantPadNdGetWorkspaceSize(
    const aclTensor* self, const aclIntArray* pad, const aclScalar* value,
    aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnConstantPadNd", workspaceSize, executor);
  cannsim::CheckSame(call, self, out);
  call.NotNull(pad, "pad").NotNull(value, "value");
  if (!call.ok()) return call.Finish(nullptr);
  // Pairs before and behind, the innermost axis first.
  const size_t rank = self->dims.size();
  const std::vector<int64_t>& pairs = pad->values;
  call.Require(pairs.size() % 2 == 0 && pairs.size() / 2 <= rank,
               "pad must hold pairs, at most one an axis");
  if (!call.ok()) return call.Finish(nullptr);
  cannsim::Dims before(rank, 0);
  cannsim::Dims shape = self->dims;
  for (size_t i = 0; i < pairs.size() / 2; ++i) {
    before[rank - 1 - i] = pairs[2 * i];
    shape[rank - 1 - i] += pairs[2 * i] + pairs[2 * i + 1];
  }
  call.Require(shape == out->dims, "out is not of the padded shape");
  return call.Finish(cannsim::Gather(
      [before](const cannsim::Dims& index, const cannsim::Dims& dims,
               cannsim::Dims* source) {
        for (size_t i = 0; i < index.size(); ++i) {
          (*source)[i] = index[i] - before[i];
          if ((*source)[i] < 0 || (*source)[i] >= dims[i]) return false;
        }
        return true;
      },
      cannsim::ScalarF(value)));
}
CANNSIM_PHASE2(ConstantPadNd)

aclnnStatus aclnnReflectionPad1dGetWorkspaceSize(const aclTensor* self,
                                                 const aclIntArray* padding,
                                                 aclTensor* out,
                                                 uint64_t* workspaceSize,
                                                 aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnReflectionPad1d", workspaceSize, executor);
  cannsim::CheckSame(call, self, out);
  call.NotNull(padding, "padding");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(padding->values.size() == 2 && self->rank() >= 2,
               "two paddings and at least 2 axes are needed");
  if (!call.ok()) return call.Finish(nullptr);
  const int64_t before = padding->values[0];
  const int64_t n = self->dims.back();
  cannsim::Dims shape = self->dims;
  shape.back() += before + padding->values[1];
  call.Require(before >= 0 && padding->values[1] >= 0 && before < n &&
                   padding->values[1] < n && shape == out->dims,
               "a padding is negative or not shorter than the axis, or out is "
               "not of the padded shape");
  return call.Finish(
      cannsim::Gather([before, n](const cannsim::Dims& index,
                                  const cannsim::Dims&, cannsim::Dims* source) {
        *source = index;
        int64_t at = index.back() - before;
        if (at < 0) at = -at;
        if (at >= n) at = 2 * (n - 1) - at;
        source->back() = at;
        return true;
      }));
}
CANNSIM_PHASE2(ReflectionPad1d)

aclnnStatus aclnnTrilGetWorkspaceSize(const aclTensor* self, int64_t diagonal,
                                      aclTensor* out, uint64_t* workspaceSize,
                                      aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnTril", workspaceSize, executor);
  return cannsim::Triangle(call, self, out, diagonal, /*upper=*/false);
}
CANNSIM_PHASE2(Tril)

aclnnStatus aclnnTriuGetWorkspaceSize(const aclTensor* self, int64_t diagonal,
                                      aclTensor* out, uint64_t* workspaceSize,
                                      aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnTriu", workspaceSize, executor);
  return cannsim::Triangle(call, self, out, diagonal, /*upper=*/true);
}
CANNSIM_PHASE2(Triu)

aclnnStatus aclnnInplaceTriuGetWorkspaceSize(aclTensor* selfRef,
                                             int64_t diagonal,
                                             uint64_t* workspaceSize,
                                             aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplaceTriu", workspaceSize, executor);
  return cannsim::Triangle(call, selfRef, selfRef, diagonal, /*upper=*/true);
}
CANNSIM_PHASE2(InplaceTriu)

aclnnStatus aclnnCatGetWorkspaceSize(const aclTensorList* tensors, int64_t dim,
                                     aclTensor* out, uint64_t* workspaceSize,
                                     aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnCat", workspaceSize, executor);
  call.Out(out, "out").NotNull(tensors, "tensors");
  if (!call.ok()) return call.Finish(nullptr);
  const int axis = cannsim::FrontAxis(dim, out->rank());
  call.Require(axis >= 0 && out->rank() > 0 && !tensors->members.empty(),
               "dim does not exist, or there is no tensor");
  int64_t n = 0;
  for (const aclTensor* member : tensors->members) {
    call.In(member, "a tensor of the list");
    if (!call.ok()) return call.Finish(nullptr);
    const auto i = static_cast<size_t>(axis);
    cannsim::Dims shape = out->dims;
    if (member->rank() == out->rank()) {
      shape[i] = member->dims[i];
      n += member->dims[i];
    }
    call.Require(member->dims == shape && member->dtype == out->dtype,
                 "the tensors and out must agree in dtype and in all axes but "
                 "dim");
  }
  if (call.ok()) {
    call.Require(out->dims[static_cast<size_t>(axis)] == n,
                 "out is not as long as the tensors together");
  }
  return call.Finish([axis](const cannsim::Arrays& a) {
    const auto i = static_cast<size_t>(axis);
    cannsim::Array part = a[0];
    for (size_t k = 1; k < a.size(); ++k) {
      part.dims[i] = a[k].dims[i];
      cannsim::Walk2(part, a[k], [&](int64_t to, int64_t from) {
        cannsim::CopyElement(part, to, a[k], from);
      });
      const auto bytes = static_cast<int64_t>(aclDataTypeSize(part.dtype));
      part.base += part.strides[i] * a[k].dims[i] * bytes;
    }
    return 0;
  });
}
CANNSIM_PHASE2(Cat)

}  // extern "C"
