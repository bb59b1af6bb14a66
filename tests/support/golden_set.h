// SPDX-License-Identifier: Apache-2.0
// The golden files of whole models: tests/data/goldens (trimmed, see its
// PROVENANCE.md), or the folder that BELAY_GOLDEN_DIR names.
#ifndef BELAY_TESTS_SUPPORT_GOLDEN_SET_H_
#define BELAY_TESTS_SUPPORT_GOLDEN_SET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "tensor/view.h"

namespace belay::test {

// Where tiny_fp4/, tiny_base_fp8/ and golden_*.safetensors are.
std::string GoldenFolder();

// golden_<checkpoint>_<mode>.safetensors; mode is "exact" or "official".
class GoldenFile {
 public:
  GoldenFile(const std::string& checkpoint, const std::string& mode);

  // "p7.", "p130.", ...: what is in the file.
  std::vector<std::string> Prompts() const;
  // Empty when the file has no such tensor.
  ConstTensorView Get(const std::string& name) const;
  // An I64 tensor as token ids; ends the program when there is none.
  std::vector<int32_t> Ids(const std::string& name) const;

 private:
  std::unique_ptr<checkpoint::SafetensorsFile> file_;
};

}  // namespace belay::test

#endif  // BELAY_TESTS_SUPPORT_GOLDEN_SET_H_
