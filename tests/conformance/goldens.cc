// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/goldens.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "base/float_formats.h"
#include "checkpoint/safetensors.h"

namespace belay::conformance {
namespace {

using checkpoint::SafetensorsFile;

const SafetensorsFile& File(const std::string& path) {
  static std::map<std::string, std::unique_ptr<SafetensorsFile>> files;
  auto& file = files[path];
  if (file == nullptr) {
    auto opened = SafetensorsFile::Open(path);
    BELAY_CHECK(opened.ok());
    file = std::move(opened).value();
  }
  return *file;
}

const SafetensorsFile& Ops() {
  return File("tests/data/goldens/ops.safetensors");
}

const SafetensorsFile& Tiny() {
  return File("tests/data/goldens/tiny_fp4/model.safetensors");
}

std::set<std::string>& Used() {
  static std::set<std::string> used;
  return used;
}

// Runs after all tests: a vector that nobody looks at proves nothing.
class EveryGoldenIsUsed : public ::testing::Environment {
 public:
  void TearDown() override {
    if (::testing::GTEST_FLAG(filter) != "*") return;
    for (const std::string& name : UnusedGoldens()) {
      ADD_FAILURE() << "no test uses the golden vector " << name;
    }
  }
};

const ::testing::Environment* const kEveryGoldenIsUsed =
    ::testing::AddGlobalTestEnvironment(new EveryGoldenIsUsed);

}  // namespace

ConstTensorView Golden(const std::string& name) {
  const auto view = Ops().Get(name);
  EXPECT_TRUE(view.ok()) << name;
  BELAY_CHECK(view.ok());
  Used().insert(name);
  return *view;
}

std::vector<float> GoldenFloats(const std::string& name) {
  const ConstTensorView view = Golden(name);
  std::vector<float> values;
  if (view.dtype() == DType::kF32) {
    const auto floats = view.as<float>();
    return {floats.begin(), floats.end()};
  }
  BELAY_CHECK(view.dtype() == DType::kBF16);
  for (const uint16_t bits : view.as<uint16_t>()) {
    values.push_back(F32FromBf16(bits));
  }
  return values;
}

std::vector<std::string> UnusedGoldens() {
  std::vector<std::string> unused;
  for (const auto& tensor : Ops().tensors()) {
    if (Used().count(tensor.name) == 0) unused.push_back(tensor.name);
  }
  return unused;
}

ConstTensorView Weight(const std::string& name) {
  const auto view = Tiny().Get(name);
  EXPECT_TRUE(view.ok()) << name;
  BELAY_CHECK(view.ok());
  return *view;
}

ops::LinearSource WeightLinear(const std::string& name, bool quantise_input) {
  ops::LinearSource source;
  source.weight = Weight(name + ".weight");
  source.quantise_input = quantise_input;
  if (source.weight.dtype() == DType::kBF16) return source;
  source.scale = Weight(name + ".scale");
  if (source.weight.dtype() == DType::kI8) {
    source.block_n = 1;
    source.block_k = 32;
  }
  return source;
}

ops::ExpertSource WeightExpert(const std::string& name) {
  return {.w1 = WeightLinear(name + ".w1"),
          .w2 = WeightLinear(name + ".w2"),
          .w3 = WeightLinear(name + ".w3")};
}

}  // namespace belay::conformance
