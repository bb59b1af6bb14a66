// SPDX-License-Identifier: Apache-2.0
// Convolution over one to three axes, forward and transposed, in groups.
#include <algorithm>

#include "aclnnop/aclnn_convolution.h"
#include "cannsim/ops/define.h"

namespace cannsim {
namespace {

struct ConvParams {
  Dims stride;
  Dims padding;
  Dims dilation;
  Dims extra;  // outputPadding
  int64_t groups = 1;
  bool transposed = false;
};

// One number for all axes, or one an axis.
bool PerAxis(const aclIntArray* array, size_t n, int64_t otherwise, Dims* out) {
  if (array == nullptr || array->values.empty()) {
    out->assign(n, otherwise);
  } else if (array->values.size() == 1) {
    out->assign(n, array->values[0]);
  } else {
    *out = array->values;
  }
  return out->size() == n;
}

int64_t OutputLength(const ConvParams& p, size_t axis, int64_t n,
                     int64_t kernel) {
  const int64_t reach = p.dilation[axis] * (kernel - 1);
  if (p.transposed) {
    return (n - 1) * p.stride[axis] - 2 * p.padding[axis] + reach +
           p.extra[axis] + 1;
  }
  const int64_t room = n + 2 * p.padding[axis] - reach - 1;
  return room < 0 ? 0 : room / p.stride[axis] + 1;
}

// Whether input place `from` meets output place `to` through kernel place `k`.
bool Meets(const ConvParams& p, const Dims& from, const Dims& to,
           const Dims& k) {
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t narrow = p.transposed ? from[i] : to[i];
    const int64_t wide = p.transposed ? to[i] : from[i];
    if (wide != narrow * p.stride[i] - p.padding[i] + k[i] * p.dilation[i]) {
      return false;
    }
  }
  return true;
}

// Places of the last axes of an array, in order.
std::vector<Dims> Places(const Dims& dims) {
  std::vector<Dims> places;
  Dims index(dims.size() - 2, 0);
  int64_t n = 1;
  for (size_t i = 2; i < dims.size(); ++i) n *= dims[i];
  for (int64_t k = 0; k < n; ++k) {
    places.push_back(index);
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < dims[i + 2]) break;
      index[i] = 0;
    }
  }
  return places;
}

int64_t At(const Array& t, int64_t a, int64_t b, const Dims& place) {
  int64_t at = a * t.strides[0] + b * t.strides[1];
  for (size_t i = 0; i < place.size(); ++i) at += place[i] * t.strides[i + 2];
  return at;
}

// The kernel places that join an output place to the input, found once.
struct Joint {
  Dims from;
  Dims kernel;
};

std::vector<Joint> JointsOf(const ConvParams& p, const Array& in,
                            const Array& weight, const Dims& to) {
  std::vector<Joint> joints;
  const std::vector<Dims> inputs = Places(in.dims);
  for (const Dims& k : Places(weight.dims)) {
    for (const Dims& from : inputs) {
      if (Meets(p, from, to, k)) joints.push_back({from, k});
    }
  }
  return joints;
}

// One element of the output before the bias. weight is [out, in / groups, k],
// transposed [in, out / groups, k].
double Sum(const ConvParams& p, const Arrays& a,
           const std::vector<Joint>& joints, int64_t n, int64_t channel) {
  const Array& in = a[0];
  const Array& weight = a[1];
  const int64_t out_channels = a[3].dims[1];
  const int64_t group = channel / (out_channels / p.groups);
  const int64_t per_group = in.dims[1] / p.groups;
  double sum = 0;
  for (int64_t c = 0; c < per_group; ++c) {
    const int64_t from = group * per_group + c;
    const int64_t first = p.transposed ? from : channel;
    const int64_t second =
        p.transposed ? channel % (out_channels / p.groups) : c;
    for (const Joint& joint : joints) {
      sum += LoadF(in, At(in, n, from, joint.from)) *
             LoadF(weight, At(weight, first, second, joint.kernel));
    }
  }
  return sum;
}

int Convolve(const Arrays& a, const ConvParams& p) {
  const Array& out = a[3];
  for (const Dims& to : Places(out.dims)) {
    const std::vector<Joint> joints = JointsOf(p, a[0], a[1], to);
    for (int64_t n = 0; n < out.dims[0]; ++n) {
      for (int64_t c = 0; c < out.dims[1]; ++c) {
        const double bias = a[2].present ? LoadF(a[2], c * a[2].strides[0]) : 0;
        StoreF(out, At(out, n, c, to), Sum(p, a, joints, n, c) + bias);
      }
    }
  }
  return 0;
}

// What the output has to be.
Dims OutputShape(const ConvParams& p, const aclTensor* in,
                 const aclTensor* weight) {
  Dims shape = {in->dims[0],
                p.transposed ? weight->dims[1] * p.groups : weight->dims[0]};
  for (size_t i = 0; i + 2 < in->dims.size(); ++i) {
    shape.push_back(OutputLength(p, i, in->dims[i + 2], weight->dims[i + 2]));
  }
  return shape;
}

bool AllPositive(const Dims& values) {
  return std::all_of(values.begin(), values.end(),
                     [](int64_t x) { return x > 0; });
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnConvolutionGetWorkspaceSize(
    const aclTensor* input, const aclTensor* weight, const aclTensor* bias,
    const aclIntArray* stride, const aclIntArray* padding,
    const aclIntArray* dilation, bool transposed,
    const aclIntArray* outputPadding, const int64_t groups, aclTensor* output,
    int8_t, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnConvolution", workspaceSize, executor);
  call.In(input, "input").In(weight, "weight").InOptional(bias, "bias");
  call.Out(output, "output");
  cannsim::NeedsFloat(call, input, "input");
  cannsim::NeedsFloat(call, weight, "weight");
  if (!call.ok()) return call.Finish(nullptr);
  const auto rank = input->dims.size();
  cannsim::ConvParams p;
  p.groups = groups;
  p.transposed = transposed;
  call.Require(rank >= 3 && rank <= 5 && weight->dims.size() == rank,
               "input and weight must have 3 to 5 axes, and as many");
  if (!call.ok()) return call.Finish(nullptr);
  const size_t n = rank - 2;
  const bool fits = cannsim::PerAxis(stride, n, 1, &p.stride) &&
                    cannsim::PerAxis(padding, n, 0, &p.padding) &&
                    cannsim::PerAxis(dilation, n, 1, &p.dilation) &&
                    cannsim::PerAxis(outputPadding, n, 0, &p.extra);
  call.Require(fits && cannsim::AllPositive(p.stride) &&
                   cannsim::AllPositive(p.dilation) && groups > 0,
               "stride, padding, dilation, outputPadding or groups do not fit");
  if (!call.ok()) return call.Finish(nullptr);
  const int64_t in_channels =
      transposed ? weight->dims[0] : weight->dims[1] * groups;
  call.Require(in_channels == input->dims[1] && input->dims[1] % groups == 0 &&
                   (transposed || weight->dims[0] % groups == 0),
               "the channels of input and weight do not fit, or groups do not "
               "divide them");
  call.Require(cannsim::OutputShape(p, input, weight) == output->dims,
               "output is not of the shape of the convolution");
  call.Require(bias == nullptr || bias->dims == cannsim::Dims{output->dims[1]},
               "bias must be one number an output channel");
  return call.Finish(
      [p](const cannsim::Arrays& a) { return cannsim::Convolve(a, p); });
}
CANNSIM_PHASE2(Convolution)

}  // extern "C"
