// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "toolkit/doctor/checks/checks.h"

namespace belay::doctor {
namespace {

// HCCL_SOCKET_IFNAME: prefixes, or "=name" exact; "^" excludes.
void CheckInterface(Patient& p) {
  const std::string name = "HCCL_SOCKET_IFNAME";
  std::string list = p.facts.Variable(name);
  if (list.empty() || list[0] == '^') return;
  const bool is_exact = list[0] == '=';
  if (is_exact) list.erase(0, 1);
  const auto there = p.machine.List("/sys/class/net");
  if (there.empty()) return;
  for (const std::string& wanted : Split(list, ',')) {
    const bool is_found =
        std::any_of(there.begin(), there.end(), [&](const std::string& one) {
          return is_exact ? one == wanted : one.starts_with(wanted);
        });
    if (is_found) return;
  }
  std::string names;
  for (const std::string& one : there) {
    names += (names.empty() ? "" : ", ") + one;
  }
  p.Add("DOCT-072", name, fmt::format("{}; there: {}", list, names),
        "ip -br a");
}

void CheckHccn(Patient& p) {
  if (p.facts.nodes.size() < 2) return;
  const auto conf = p.machine.Read("/etc/hccn.conf");
  if (conf) {
    const auto values = KeyValues(*conf);
    std::string missing;
    for (const int node : p.facts.nodes) {
      if (!values.contains(fmt::format("address_{}", node))) {
        missing += fmt::format("{}{}", missing.empty() ? "" : ", ", node);
      }
    }
    if (!missing.empty()) {
      p.Add("DOCT-074", "/etc/hccn.conf", "no address of device " + missing,
            "for i in $(seq 0 7); do hccn_tool -i $i -ip -g; done");
    }
  }
  std::map<std::string, std::vector<int>> tls;
  for (const int node : p.facts.nodes) {
    const CommandOutput link =
        p.machine.Run(fmt::format("hccn_tool -i {} -link -g", node));
    if (!link.is_found) return;
    if (link.out.find("DOWN") != std::string::npos) {
      p.Add("DOCT-071", fmt::format("hccn_tool -i {} -link -g", node),
            link.out.substr(0, link.out.find('\n')),
            fmt::format("hccn_tool -i {} -link_stat -g", node));
    }
    const CommandOutput state =
        p.machine.Run(fmt::format("hccn_tool -i {} -tls -g", node));
    const size_t at = state.out.find("tls switch[");
    if (at == std::string::npos) continue;
    tls[state.out.substr(at + 11, 1)].push_back(node);
  }
  if (tls.size() > 1) {
    std::string list;
    for (const auto& [state, nodes] : tls) {
      list += fmt::format("{}switch {}: {} devices", list.empty() ? "" : ", ",
                          state, nodes.size());
    }
    p.Add("DOCT-070", "hccn_tool -tls -g", list,
          "for i in $(seq 0 7); do hccn_tool -i $i -tls -s enable 0; done");
  }
}

// Rank tables: 1.0 for A2, 1.2 for A3, 2.0 for the 950.
void CheckRankTable(Patient& p) {
  std::string file = p.facts.Variable("RANK_TABLE_FILE");
  if (file.empty()) file = "/etc/hccl_rootinfo.json";
  const auto text = p.machine.Read(file);
  if (!text) {
    if (!p.facts.Variable("RANK_TABLE_FILE").empty()) {
      p.Add("DOCT-073", "RANK_TABLE_FILE", file + " cannot be read",
            "ls -l " + file);
    }
    return;
  }
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const std::string version = json.is_object() && json.contains("version") &&
                                      json["version"].is_string()
                                  ? json["version"].get<std::string>()
                                  : "";
  const std::string wanted = p.facts.family == Family::kA2   ? "1.0"
                             : p.facts.family == Family::kA3 ? "1.2"
                             : p.facts.family == Family::kA5 ? "2.0"
                                                             : "";
  if (wanted.empty() || version == wanted) return;
  p.Add("DOCT-073", file,
        fmt::format("version \"{}\", {} takes {}", version,
                    NameOf(p.facts.family), wanted),
        "");
}

}  // namespace

void CheckNetwork(Patient& patient) {
  CheckInterface(patient);
  CheckHccn(patient);
  CheckRankTable(patient);
}

}  // namespace belay::doctor
