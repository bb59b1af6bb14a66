// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
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

// "model-00003-of-00046.safetensors": 46; 0 for other names.
uint64_t ShardsOf(const std::string& name) {
  constexpr std::string_view kEnd = ".safetensors";
  const size_t of = name.rfind("-of-");
  if (!name.ends_with(kEnd) || of == std::string::npos) return 0;
  const char* last = name.data() + name.size() - kEnd.size();
  uint64_t n = 0;
  if (std::from_chars(name.data() + of + 4, last, n).ptr != last) return 0;
  return n <= 100000 ? n : 0;
}

// A download that stopped, and whether the rest of it would fit.
void CheckShards(Patient& p) {
  if (p.model.empty()) return;
  uint64_t n_all = 0, n_there = 0, bytes = 0;
  for (const std::string& name : p.machine.List(p.model)) {
    const uint64_t n = ShardsOf(name);
    if (n == 0) continue;
    const PathState state = p.machine.Stat(p.model + "/" + name);
    if (state.kind != PathKind::kFile) continue;
    n_all = std::max(n_all, n);
    ++n_there;
    bytes += state.bytes;
  }
  if (n_there == 0 || n_there >= n_all) return;
  p.Add("DOCT-083", p.model,
        fmt::format("{} of {} weight files are there", n_there, n_all),
        "ls -l " + p.model);
  const auto free = p.machine.FreeBytes(p.model);
  if (!free || bytes == 0) return;
  // Shards are of about one size.
  const double rest = static_cast<double>(bytes) /
                      static_cast<double>(n_there) *
                      static_cast<double>(n_all - n_there);
  if (static_cast<double>(*free) >= rest) return;
  constexpr double kGib = 1 << 30;
  p.Add("DOCT-084", p.model,
        fmt::format("{:.1f} GiB are free, the rest takes about {:.1f}",
                    static_cast<double>(*free) / kGib, rest / kGib),
        "df -h " + p.model);
}

}  // namespace

void CheckModel(Patient& patient) {
  if (!patient.facts.smi.devices.empty()) CheckChip(patient);
  CheckWeights(patient);
  CheckShards(patient);
}

}  // namespace belay::doctor
