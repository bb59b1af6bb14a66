// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "toolkit/doctor/checks/checks.h"
#include "toolkit/doctor/facts/version.h"

namespace belay::doctor {
namespace {

// The cell of a table's row, by the name of its column.
std::string Cell(const diag::Table& table, const std::vector<std::string>& row,
                 const std::string& column) {
  const auto found =
      std::find(table.columns.begin(), table.columns.end(), column);
  if (found == table.columns.end()) return "";
  return row[static_cast<size_t>(found - table.columns.begin())];
}

const diag::Table* TableOf(const Patient& p, const char* id) {
  const diag::Entry* entry = p.catalogue.Find(id);
  return entry != nullptr && entry->table ? &*entry->table : nullptr;
}

// torch 2.9.0+cpu goes with torch_npu 2.9.0.post2.
void CheckTorch(Patient& p) {
  const Facts& facts = p.facts;
  const std::string torch = facts.Version("torch");
  const std::string npu = facts.Version("torch_npu");
  if (torch.empty()) return;
  const std::string folder = facts.packages.at("torch").folder;
  if (npu.empty()) {
    if (facts.has_npu()) {
      p.Add("DOCT-034", folder,
            fmt::format("torch {} without torch_npu", torch),
            fmt::format("pip install torch_npu=={}", BaseVersion(torch)));
    }
    return;
  }
  if (BaseVersion(torch) != BaseVersion(npu)) {
    p.Add("DOCT-031", folder, fmt::format("torch {}, torch_npu {}", torch, npu),
          fmt::format("pip install torch=={}", BaseVersion(npu)));
  }
  const diag::Table* table = TableOf(p, "VER-001");
  if (table == nullptr || facts.cann.empty()) return;
  for (const auto& row : table->rows) {
    if (Cell(*table, row, "torch_npu") != npu) continue;
    const std::string cann = Cell(*table, row, "cann");
    if (!IsSameRelease(cann, facts.cann, 2)) {
      p.Add("DOCT-032", folder,
            fmt::format("torch_npu {} is for CANN {}, here is {}", npu, cann,
                        facts.cann),
            "belay explain VER-001");
    }
    return;
  }
}

// "v0.10.1/v0.10.1.1" holds both.
bool Lists(const std::string& cell, const std::string& version) {
  for (const std::string& one : Split(cell, '/')) {
    if (CompareVersions(one, version) == 0) return true;
  }
  return false;
}

void CheckVllm(Patient& p) {
  const Facts& facts = p.facts;
  const std::string ascend = facts.Version("vllm_ascend");
  const diag::Table* table = TableOf(p, "VER-002");
  if (ascend.empty() || table == nullptr) return;
  const std::string folder = facts.packages.at("vllm_ascend").folder;
  for (const auto& row : table->rows) {
    if (CompareVersions(Cell(*table, row, "vllm_ascend"), ascend) != 0) {
      continue;
    }
    const auto check = [&](const char* name, const std::string& here,
                           const std::string& wanted, bool fits) {
      if (here.empty() || fits) return;
      p.Add("DOCT-033", folder,
            fmt::format("vllm-ascend {} wants {} {}, here is {}", ascend, name,
                        wanted, here),
            "belay explain VER-002");
    };
    const std::string vllm = Cell(*table, row, "vllm");
    check("vllm", facts.Version("vllm"), vllm,
          Lists(vllm, BaseVersion(facts.Version("vllm"))) ||
              Lists(vllm, facts.Version("vllm")));
    const std::string torch = Cell(*table, row, "torch_npu");
    check("torch_npu", facts.Version("torch_npu"), torch,
          BaseVersion(torch) == BaseVersion(facts.Version("torch_npu")));
    const std::string cann = Cell(*table, row, "cann");
    check("CANN", facts.cann, cann, IsSameRelease(cann, facts.cann, 2));
    return;
  }
}

void CheckNumpy(Patient& p) {
  const Facts& facts = p.facts;
  const std::string numpy = facts.Version("numpy");
  if (numpy.empty() || facts.cann.empty()) return;
  if (CompareVersions(numpy, "2.0") >= 0 &&
      CompareVersions(facts.cann, "8.3.RC1") < 0) {
    p.Add("DOCT-035", facts.packages.at("numpy").folder,
          fmt::format("numpy {} with CANN {}", numpy, facts.cann),
          "pip install 'numpy<2'");
  }
}

void CheckNnal(Patient& p) {
  if (p.facts.Version("vllm_ascend").empty()) return;
  if (!p.machine.Stat("/usr/local/Ascend/nnal/atb").exists()) {
    p.Add("DOCT-036", "/usr/local/Ascend/nnal/atb", "not there", "");
  } else if (p.facts.Variable("ATB_HOME_PATH").empty()) {
    p.Add("DOCT-037", "ATB_HOME_PATH", "not set",
          "source /usr/local/Ascend/nnal/atb/set_env.sh");
  }
}

}  // namespace

void CheckPackages(Patient& patient) {
  CheckTorch(patient);
  CheckVllm(patient);
  CheckNumpy(patient);
  CheckNnal(patient);
}

}  // namespace belay::doctor
