// SPDX-License-Identifier: Apache-2.0
// Windows over images [N, C, H, W]: pooling, columns, nearest neighbours.
#include <algorithm>
#include <cmath>

#include "aclnnop/aclnn_avgpool2d.h"
#include "aclnnop/aclnn_im2col.h"
#include "aclnnop/aclnn_max_pool.h"
#include "aclnnop/aclnn_upsample_nearest_2d.h"
#include "cannsim/ops/define.h"

namespace cannsim {
namespace {

// How a window slides, for height and width.
struct Window {
  int64_t size[2];
  int64_t stride[2];
  int64_t before[2];
  int64_t after[2];
  int64_t dilation[2] = {1, 1};

  // Positions along axis i of an image that is `n` long.
  int64_t Count(int i, int64_t n, bool ceil) const {
    const int64_t room =
        n + before[i] + after[i] - dilation[i] * (size[i] - 1) - 1;
    if (room < 0) return 0;
    int64_t count = room / stride[i] + 1;
    // A window that hangs over must still begin inside or in the padding
    // before.
    if (ceil && room % stride[i] != 0 && count * stride[i] < n + before[i]) {
      ++count;
    }
    return count;
  }
};

bool Take2(const aclIntArray* array, int64_t otherwise, int64_t* out) {
  const std::vector<int64_t> none;
  const auto& v = array == nullptr ? none : array->values;
  if (v.empty()) {
    out[0] = out[1] = otherwise;
  } else if (v.size() == 1 || v.size() == 2) {
    out[0] = v.front();
    out[1] = v.back();
  } else {
    return false;
  }
  return true;
}

bool Positive(const int64_t* pair) { return pair[0] > 0 && pair[1] > 0; }

bool IsImage(const aclTensor* t) { return t->rank() == 4; }

int64_t At(const Array& t, int64_t n, int64_t c, int64_t h, int64_t w) {
  return n * t.strides[0] + c * t.strides[1] + h * t.strides[2] +
         w * t.strides[3];
}

// What one window sees.
struct Pooled {
  double sum = 0;
  double largest = -HUGE_VAL;
  int64_t n_inside = 0;  // in the image
  int64_t n_padded = 0;  // in the image and its padding
};

Pooled Look(const Array& image, const Window& w, const int64_t* place) {
  Pooled p;
  for (int64_t i = 0; i < w.size[0]; ++i) {
    for (int64_t j = 0; j < w.size[1]; ++j) {
      const int64_t y =
          place[2] * w.stride[0] - w.before[0] + i * w.dilation[0];
      const int64_t x =
          place[3] * w.stride[1] - w.before[1] + j * w.dilation[1];
      if (y < image.dims[2] + w.after[0] && x < image.dims[3] + w.after[1]) {
        ++p.n_padded;
      }
      if (y < 0 || x < 0 || y >= image.dims[2] || x >= image.dims[3]) continue;
      const double v = LoadF(image, At(image, place[0], place[1], y, x));
      ++p.n_inside;
      p.sum += v;
      p.largest = std::max(p.largest, v);
    }
  }
  return p;
}

// value(Pooled) at each place of the output.
template <typename F>
Kernel Pool(const Window& w, F value) {
  return [w, value](const Arrays& a) {
    const Array& out = a[1];
    int64_t flat = 0;
    Walk1(out, [&](int64_t to) {
      const int64_t rows = flat / out.dims[3];
      const int64_t planes = rows / out.dims[2];
      const int64_t place[4] = {planes / out.dims[1], planes % out.dims[1],
                                rows % out.dims[2], flat % out.dims[3]};
      StoreF(out, to, value(Look(a[0], w, place)));
      ++flat;
    });
    return 0;
  };
}

void CheckPool(Phase1& call, const aclTensor* self, const aclTensor* out,
               const Window& w, bool ceil) {
  NeedsFloat(call, self, "self");
  if (!call.ok()) return;
  call.Require(IsImage(self) && IsImage(out),
               "self and out must be [N, C, H, W]");
  call.Require(Positive(w.size) && Positive(w.stride) && Positive(w.dilation),
               "a kernel, stride or dilation is not positive");
  if (!call.ok()) return;
  call.Require(out->dims == Dims{self->dims[0], self->dims[1],
                                 w.Count(0, self->dims[2], ceil),
                                 w.Count(1, self->dims[3], ceil)},
               "out is not of the pooled shape");
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnAvgPool2dGetWorkspaceSize(
    const aclTensor* self, const aclIntArray* kernelSize,
    const aclIntArray* strides, const aclIntArray* paddings,
    const bool ceilMode, const bool countIncludePad,
    const int64_t divisorOverride, const int8_t, aclTensor* out,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnAvgPool2d", workspaceSize, executor);
  call.In(self, "self").Out(out, "out").NotNull(kernelSize, "kernelSize");
  if (!call.ok()) return call.Finish(nullptr);
  cannsim::Window w;
  bool fits = cannsim::Take2(kernelSize, 0, w.size) &&
              cannsim::Take2(paddings, 0, w.before);
  fits = fits && cannsim::Take2(strides, 0, w.stride);
  call.Require(fits, "kernelSize, strides and paddings must hold 1 or 2");
  for (int i = 0; i < 2; ++i) {
    if (w.stride[i] == 0) w.stride[i] = w.size[i];
    w.after[i] = w.before[i];
  }
  cannsim::CheckPool(call, self, out, w, ceilMode);
  return call.Finish(cannsim::Pool(w, [=](const cannsim::Pooled& p) {
    const int64_t n = divisorOverride != 0 ? divisorOverride
                      : countIncludePad    ? p.n_padded
                                           : p.n_inside;
    return p.sum / static_cast<double>(n);
  }));
}
CANNSIM_PHASE2(AvgPool2d)

aclnnStatus aclnnMaxPoolGetWorkspaceSize(
    const aclTensor* self, const aclIntArray* kernelShape,
    const aclIntArray* strides, const int64_t autoPad, const aclIntArray* pads,
    const aclIntArray* dilations, const int64_t ceilMode, aclTensor* out,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnMaxPool", workspaceSize, executor);
  call.In(self, "self").Out(out, "out").NotNull(kernelShape, "kernelShape");
  call.Require(autoPad == 0, "autoPad other than 0 is not simulated");
  if (!call.ok()) return call.Finish(nullptr);
  cannsim::Window w;
  call.Require(cannsim::Take2(kernelShape, 0, w.size) &&
                   cannsim::Take2(strides, 1, w.stride) &&
                   cannsim::Take2(dilations, 1, w.dilation),
               "kernelShape, strides and dilations must hold 1 or 2");
  // Begins of all axes, then ends; or one padding for both sides.
  const bool four = pads != nullptr && pads->values.size() == 4;
  if (four) {
    for (int i = 0; i < 2; ++i) {
      w.before[i] = pads->values[static_cast<size_t>(i)];
      w.after[i] = pads->values[static_cast<size_t>(i) + 2];
    }
  } else {
    call.Require(cannsim::Take2(pads, 0, w.before), "pads must hold 1, 2 or 4");
    w.after[0] = w.before[0];
    w.after[1] = w.before[1];
  }
  cannsim::CheckPool(call, self, out, w, ceilMode != 0);
  return call.Finish(
      cannsim::Pool(w, [](const cannsim::Pooled& p) { return p.largest; }));
}
CANNSIM_PHASE2(MaxPool)

aclnnStatus aclnnIm2colGetWorkspaceSize(
    const aclTensor* self, const aclIntArray* kernelSize,
    const aclIntArray* dilation, const aclIntArray* padding,
    const aclIntArray* stride, const aclTensor* out, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnIm2col", workspaceSize, executor);
  call.In(self, "self").Out(out, "out").NotNull(kernelSize, "kernelSize");
  cannsim::NeedsFloat(call, self, "self");
  if (!call.ok()) return call.Finish(nullptr);
  cannsim::Window w;
  call.Require(cannsim::Take2(kernelSize, 0, w.size) &&
                   cannsim::Take2(dilation, 1, w.dilation) &&
                   cannsim::Take2(padding, 0, w.before) &&
                   cannsim::Take2(stride, 1, w.stride) &&
                   cannsim::IsImage(self) && out->rank() == 3,
               "self must be [N, C, H, W], out [N, C * kernel, places]");
  if (!call.ok()) return call.Finish(nullptr);
  w.after[0] = w.before[0];
  w.after[1] = w.before[1];
  call.Require(cannsim::Positive(w.size) && cannsim::Positive(w.stride) &&
                   cannsim::Positive(w.dilation),
               "a kernel, stride or dilation is not positive");
  if (!call.ok()) return call.Finish(nullptr);
  const int64_t n_columns = w.Count(1, self->dims[3], false);
  call.Require(
      out->dims == cannsim::Dims{self->dims[0],
                                 self->dims[1] * w.size[0] * w.size[1],
                                 w.Count(0, self->dims[2], false) * n_columns},
      "out is not of the shape of the columns");
  return call.Finish([w, n_columns](const cannsim::Arrays& a) {
    const cannsim::Array& in = a[0];
    const cannsim::Array& out_here = a[1];
    int64_t flat = 0;
    cannsim::Walk1(out_here, [&](int64_t to) {
      const int64_t place = flat % out_here.dims[2];
      const int64_t row = flat / out_here.dims[2] % out_here.dims[1];
      const int64_t n = flat / out_here.dims[2] / out_here.dims[1];
      const int64_t in_kernel = row % (w.size[0] * w.size[1]);
      const int64_t y = place / n_columns * w.stride[0] - w.before[0] +
                        in_kernel / w.size[1] * w.dilation[0];
      const int64_t x = place % n_columns * w.stride[1] - w.before[1] +
                        in_kernel % w.size[1] * w.dilation[1];
      const int64_t c = row / (w.size[0] * w.size[1]);
      const bool inside = y >= 0 && x >= 0 && y < in.dims[2] && x < in.dims[3];
      cannsim::StoreF(
          out_here, to,
          inside ? cannsim::LoadF(in, cannsim::At(in, n, c, y, x)) : 0);
      ++flat;
    });
    return 0;
  });
}
CANNSIM_PHASE2(Im2col)

aclnnStatus aclnnUpsampleNearest2dGetWorkspaceSize(
    const aclTensor* self, const aclIntArray* outputSize, aclTensor* out,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnUpsampleNearest2d", workspaceSize, executor);
  call.In(self, "self").Out(out, "out").NotNull(outputSize, "outputSize");
  cannsim::NeedsFloat(call, self, "self");
  if (!call.ok()) return call.Finish(nullptr);
  const std::vector<int64_t>& size = outputSize->values;
  call.Require(cannsim::IsImage(self) && size.size() == 2 && size[0] > 0 &&
                   size[1] > 0 && self->n_elements() > 0,
               "self must be [N, C, H, W] and outputSize two positive numbers");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(out->dims == cannsim::Dims{self->dims[0], self->dims[1], size[0],
                                          size[1]},
               "out is not of outputSize");
  return call.Finish([](const cannsim::Arrays& a) {
    const cannsim::Array& in = a[0];
    const cannsim::Array& to = a[1];
    int64_t flat = 0;
    cannsim::Walk1(to, [&](int64_t at) {
      const int64_t x = flat % to.dims[3];
      const int64_t y = flat / to.dims[3] % to.dims[2];
      const int64_t plane = flat / to.dims[3] / to.dims[2];
      const int64_t from =
          cannsim::At(in, plane / to.dims[1], plane % to.dims[1],
                      y * in.dims[2] / to.dims[2], x * in.dims[3] / to.dims[3]);
      cannsim::StoreF(to, at, cannsim::LoadF(in, from));
      ++flat;
    });
    return 0;
  });
}
CANNSIM_PHASE2(UpsampleNearest2d)

}  // extern "C"
