// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "toolkit/doctor/checks/checks.h"

namespace belay::doctor {
namespace {

// The chips on which engines run DeepSeek-V4 (catalogue, VER-008).
void CheckChip(Patient& p) {
  const Family family = p.facts.family;
  if (family == Family::kUnknown || family == Family::kA2 ||
      family == Family::kA3 || family == Family::kA5) {
    return;
  }
  p.Add("DOCT-080", "npu-smi info",
        fmt::format("{} ({})", p.facts.smi.devices[0].name, NameOf(family)),
        "belay explain VER-008");
}

// Official weights are FP8 with FP4 experts: only the 950 computes with them.
void CheckWeights(Patient& p) {
  if (p.model.empty()) return;
  const std::string file = p.model + "/config.json";
  const auto text = p.machine.Read(file);
  if (!text) {
    p.Add("DOCT-082", file, "cannot be read", "ls " + p.model);
    return;
  }
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object()) {
    p.Add("DOCT-082", file, "is not JSON", "head " + file);
    return;
  }
  std::string method;
  if (const auto q = json.find("quantization_config");
      q != json.end() && q->is_object() && q->contains("quant_method") &&
      (*q)["quant_method"].is_string()) {
    method = (*q)["quant_method"].get<std::string>();
  }
  const bool is_requantised =
      p.machine.Stat(p.model + "/quant_model_description.json").exists();
  const bool is_old_chip =
      p.facts.family == Family::kA2 || p.facts.family == Family::kA3;
  if (is_old_chip && method == "fp8" && !is_requantised) {
    p.Add("DOCT-081", file,
          fmt::format("quant_method fp8 on {}", NameOf(p.facts.family)),
          "belay explain VER-008");
  }
}

}  // namespace

void CheckModel(Patient& patient) {
  if (!patient.facts.smi.devices.empty()) CheckChip(patient);
  CheckWeights(patient);
}

}  // namespace belay::doctor
