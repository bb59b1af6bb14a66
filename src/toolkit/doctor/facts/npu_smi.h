// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TOOLKIT_DOCTOR_FACTS_NPU_SMI_H_
#define BELAY_TOOLKIT_DOCTOR_FACTS_NPU_SMI_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace belay::doctor {

struct SmiDevice {
  int npu = -1;        // the card's number
  std::string name;    // "910B3", "Ascend910", "Ascend950PR", "310P3"
  std::string health;  // "OK", "Warning", "Alarm", "Critical", "UNKNOWN"
  std::string bus;     // "0000:C1:00.0"
  int64_t used_mb = -1, total_mb = -1;  // HBM, or memory where there is none
  // -1: not said.
  int64_t ai_core_percent = -1;
  int64_t temperature_c = -1;
  double power_w = -1;
};

struct SmiProcess {
  int npu = -1;
  int64_t pid = -1;
  std::string name;
  int64_t memory_mb = -1;
};

struct SmiInfo {
  std::string version;  // of npu-smi, which is that of the driver
  std::vector<SmiDevice> devices;
  std::vector<SmiProcess> processes;
};

// Reads `npu-smi info` in the layouts of A2, A3 (two dies a card), 310, 310P
// and 950, which differ in columns and widths: cells are split at "|". Takes
// any text.
SmiInfo ParseNpuSmi(std::string_view text);

}  // namespace belay::doctor

#endif  // BELAY_TOOLKIT_DOCTOR_FACTS_NPU_SMI_H_
