// SPDX-License-Identifier: Apache-2.0
#include "support/golden_set.h"

#include <cstdlib>

#include "support/value.h"

namespace belay::test {

std::string GoldenFolder() {
  const char* folder = std::getenv("BELAY_GOLDEN_DIR");
  return folder != nullptr ? folder : "tests/data/goldens";
}

GoldenFile::GoldenFile(const std::string& checkpoint, const std::string& mode)
    : file_(Value(checkpoint::SafetensorsFile::Open(
          GoldenFolder() + "/golden_" + checkpoint + "_" + mode +
          ".safetensors"))) {}

std::vector<std::string> GoldenFile::Prompts() const {
  std::vector<std::string> prompts;
  for (const checkpoint::StoredTensor& tensor : file_->tensors()) {
    const size_t end = tensor.name.rfind(".ids");
    if (end != std::string::npos) {
      prompts.push_back(tensor.name.substr(0, end + 1));
    }
  }
  return prompts;
}

ConstTensorView GoldenFile::Get(const std::string& name) const {
  const checkpoint::StoredTensor* tensor = file_->Find(name);
  return tensor == nullptr ? ConstTensorView() : tensor->view;
}

std::vector<int32_t> GoldenFile::Ids(const std::string& name) const {
  std::vector<int32_t> ids;
  for (const int64_t id : Value(file_->Get(name)).as<int64_t>()) {
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

}  // namespace belay::test
