// SPDX-License-Identifier: Apache-2.0
// Fault scripts and lists of quirks: any bytes parse or are refused with words.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cannsim/runtime/faults/quirks.h"
#include "cannsim/runtime/faults/script.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), n_bytes);
  std::vector<cannsim::FaultRule> rules;
  std::string error;
  if (!cannsim::ParseFaultScript(text, &rules, &error) && error.empty()) {
    std::abort();
  }
  for (const cannsim::FaultRule& rule : rules) {
    const bool counts = rule.what != cannsim::FaultRule::What::kByte;
    if ((counts && rule.n == 0) || !(rule.factor >= 1)) std::abort();
  }
  uint32_t mask = 0;
  error.clear();
  if (!cannsim::ParseQuirks(text, &mask, &error) && error.empty()) {
    std::abort();
  }
  return 0;
}
