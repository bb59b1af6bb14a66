// SPDX-License-Identifier: Apache-2.0
// A back end under test, with memory: tensors go in and come out by copies, so
// that the suite fits a back end whose memory is not the host's.
#ifndef BELAY_TESTS_CONFORMANCE_DEVICE_H_
#define BELAY_TESTS_CONFORMANCE_DEVICE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ops/backend.h"

namespace belay::conformance {

// The largest sizes of the suite; every back end is planned for them.
ops::OpLimits SuiteLimits();

class Device {
 public:
  explicit Device(std::unique_ptr<ops::Backend> backend);

  ops::Backend& ops() { return *backend_; }
  // Whether it takes weights in blocks of GGUF, and cache rows in FP8 and FP4.
  bool takes_blocks() const { return backend_->name() != "cann"; }
  bool takes_packed_rows() const { return backend_->name() != "cann"; }

  TensorView Zeros(DType dtype, const Shape& shape);
  // A copy of host data; strided sources become contiguous.
  TensorView Put(const ConstTensorView& host);
  // bf16 (rounded) or f32 from floats.
  TensorView Put(DType dtype, const Shape& shape,
                 const std::vector<float>& values);
  TensorView PutInts(const Shape& shape, const std::vector<int32_t>& values);

  std::vector<float> Get(const ConstTensorView& view);  // bf16 or f32
  std::vector<int32_t> GetInts(const ConstTensorView& view);
  std::vector<uint8_t> GetBytes(const ConstTensorView& view);

  // Bound weights, kept as long as the device.
  const ops::BoundLinear* Bind(const ops::LinearSource& source);
  const ops::BoundExperts* Bind(const std::vector<ops::ExpertSource>& experts,
                                int64_t first_expert = 0);
  ConstTensorView Bind(const ConstTensorView& host);
  // [n_out, n_in] bf16 from floats.
  const ops::BoundLinear* BindBf16(int64_t n_out, int64_t n_in,
                                   const std::vector<float>& values);

 private:
  std::unique_ptr<ops::Backend> backend_;
  std::vector<std::unique_ptr<ops::DeviceBuffer>> buffers_;
  std::vector<std::unique_ptr<ops::BoundLinear>> linears_;
  std::vector<std::unique_ptr<ops::BoundExperts>> experts_;
  std::vector<std::vector<uint16_t>> host_weights_;
};

// Names of the back ends in this build.
std::vector<std::string> BackendNames();
// A planned back end by name.
std::unique_ptr<Device> MakeDevice(const std::string& name,
                                   const ops::Numerics& numerics);

ops::Numerics Official();
ops::Numerics Exact();

// The base of all suites, one instance a back end. Numerics are chosen by the
// test.
class BackendTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Device> Make(const ops::Numerics& numerics) {
    return MakeDevice(GetParam(), numerics);
  }
};

inline std::string NameOfBackend(
    const ::testing::TestParamInfo<std::string>& param) {
  return param.param;
}

#define BELAY_CONFORMANCE_SUITE(Suite)                                       \
  INSTANTIATE_TEST_SUITE_P(Backends, Suite,                                  \
                           ::testing::ValuesIn(conformance::BackendNames()), \
                           conformance::NameOfBackend)

}  // namespace belay::conformance

#endif  // BELAY_TESTS_CONFORMANCE_DEVICE_H_
