// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "toolkit/doctor/checks/checks.h"

namespace belay::doctor {
namespace {

using Status = diag::Variable::Status;

std::optional<int64_t> NumberOf(const std::string& text) {
  // strtoll() would skip blanks, which the readers do not.
  if (text.empty() || text.size() > 18 || text[0] == ' ') {
    return std::nullopt;
  }
  char* end = nullptr;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  return *end == '\0' ? std::optional(value) : std::nullopt;
}

std::string Joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) {
    text += (text.empty() ? "" : ", ") + item;
  }
  return text;
}

void CheckOne(Patient& p, const diag::Variable& variable,
              const std::string& value) {
  const std::string unset = "unset " + variable.name;
  if (variable.status == Status::kWrong) {
    p.Add("DOCT-040", variable.name,
          variable.instead.empty()
              ? "nobody reads it"
              : fmt::format("nobody reads it; meant is {}", variable.instead),
          unset + (variable.instead.empty()
                       ? ""
                       : "; belay explain " + variable.instead));
    return;
  }
  // Variables that only others read are their business.
  if (variable.status == Status::kForeign) return;
  const bool is_listed =
      variable.allowed.empty() ||
      std::find(variable.allowed.begin(), variable.allowed.end(), value) !=
          variable.allowed.end();
  const auto number = NumberOf(value);
  const bool is_in_range =
      variable.range.empty() || !number ||
      (*number >= variable.range[0] && *number <= variable.range[1]);
  const bool is_number = variable.range.empty() || number || value == "auto";
  if (!is_listed || !is_in_range || !is_number) {
    const std::string legal =
        !is_listed
            ? Joined(variable.allowed)
            : fmt::format("{} to {}", variable.range[0], variable.range[1]);
    p.Add("DOCT-041", variable.name,
          fmt::format("\"{}\", legal: {}", value.substr(0, 80), legal), unset);
  }
  for (const std::string& other : variable.conflicts) {
    if (p.facts.Variable(other).empty()) continue;
    const bool is_told = std::any_of(  // from the other side
        p.findings.begin(), p.findings.end(), [&](const Finding& finding) {
          return finding.id == "DOCT-042" && finding.where == other &&
                 finding.evidence.ends_with(" " + variable.name);
        });
    if (is_told) continue;
    p.Add("DOCT-042", variable.name, "set together with " + other,
          "unset " + other);
  }
}

void CheckVisible(Patient& p) {
  const std::string name = "ASCEND_RT_VISIBLE_DEVICES";
  const std::string list = p.facts.Variable(name);
  if (list.empty()) return;
  int64_t last = -1;
  for (const std::string& item : Split(list, ',')) {
    const auto number = NumberOf(item);
    if (!number || *number <= last) {
      p.Add("DOCT-043", name, list + " is not an ascending list of numbers",
            "export " + name + "=0,1,2,3");
      return;
    }
    last = *number;
  }
  const auto n_devices = static_cast<int64_t>(p.facts.nodes.size());
  if (n_devices > 0 && last >= n_devices &&
      std::find(p.facts.nodes.begin(), p.facts.nodes.end(),
                static_cast<int>(last)) == p.facts.nodes.end()) {
    p.Add(
        "DOCT-044", name,
        fmt::format("{} names device {}; there are {}", list, last, n_devices),
        "ls /dev/davinci*");
  }
}

void CheckSlow(Patient& p) {
  const auto slow = [&](const char* name, std::string_view value) {
    if (p.facts.Variable(name) == value) {
      p.Add("DOCT-045", name, fmt::format("\"{}\"", value),
            fmt::format("unset {}", name));
    }
  };
  slow("ASCEND_LAUNCH_BLOCKING", "1");
  slow("ASCEND_GLOBAL_LOG_LEVEL", "0");
  slow("ASCEND_GLOBAL_LOG_LEVEL", "1");
  slow("TASK_QUEUE_ENABLE", "0");
}

void CheckTimeouts(Patient& p) {
  const auto event = NumberOf(p.facts.Variable("HCCL_EVENT_TIMEOUT"));
  const auto exec = NumberOf(p.facts.Variable("HCCL_EXEC_TIMEOUT"));
  // The defaults are 1868 and 1836; 0 means never.
  const int64_t event_s = event.value_or(1868);
  const int64_t exec_s = exec.value_or(1836);
  if ((event || exec) && event_s != 0 && (exec_s == 0 || event_s <= exec_s)) {
    p.Add("DOCT-046", "HCCL_EVENT_TIMEOUT",
          fmt::format("{} s, HCCL_EXEC_TIMEOUT is {} s", event_s, exec_s),
          fmt::format("export HCCL_EVENT_TIMEOUT={}",
                      exec_s == 0 ? 0 : exec_s + 32));
  }
}

}  // namespace

void CheckVariables(Patient& patient) {
  for (const diag::Entry& entry : patient.catalogue.entries()) {
    if (!entry.variable) continue;
    const std::string value = patient.facts.Variable(entry.variable->name);
    // ASCEND_RT_VISIBLE_DEVICES has a check of its own.
    if (value.empty() || entry.variable->name == "ASCEND_RT_VISIBLE_DEVICES") {
      continue;
    }
    CheckOne(patient, *entry.variable, value);
  }
  CheckVisible(patient);
  CheckSlow(patient);
  CheckTimeouts(patient);
}

}  // namespace belay::doctor
