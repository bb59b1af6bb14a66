// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/count/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "cannsim/runtime/count/counters.h"
#include "cannsim/runtime/process.h"

namespace cannsim {
namespace {

struct Row {
  const char* key;
  const char* text;
  uint64_t value;
};

std::vector<Row> Rows() {
  const Counters& c = Count();
  return {
      {"launches", "launches", c.launches},
      {"operators", "operators run", c.operators},
      {"graph_replays", "graph replays", c.graph_replays},
      {"host_syncs", "waits of the host", c.host_syncs},
      {"blocking_copies", "copies that the host waited for", c.blocking_copies},
      {"allocations", "allocations", c.allocations},
      {"frees", "frees", c.frees},
      {"host_allocations", "pinned allocations", c.host_allocations},
      {"host_frees", "pinned frees", c.host_frees},
      {"bytes_to_device", "bytes to the device", c.bytes_to_device},
      {"bytes_to_host", "bytes to the host", c.bytes_to_host},
      {"bytes_on_device", "bytes from device to device", c.bytes_on_device},
      {"compilations", "compilations", c.compilations},
  };
}

std::vector<std::pair<std::string, TaskTime>> LongestFirst() {
  std::vector<std::pair<std::string, TaskTime>> times;
  for (const auto& entry : TimesByName()) times.push_back(entry);
  std::stable_sort(
      times.begin(), times.end(),
      [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
  return times;
}

}  // namespace

std::string ReportText() {
  const Process& process = Process::Get();
  std::string text = fmt::format("cannsim: {}, process {}\n",
                                 process.profile().name, getpid());
  for (const Row& row : Rows()) {
    text += fmt::format("  {:<34}{:>16}\n", row.text, row.value);
  }
  for (int id = 0; id < process.n_devices(); ++id) {
    const DeviceMemory* memory = process.MemoryIfAny(id);
    if (memory == nullptr) continue;
    text += fmt::format("  {:<34}{:>16}\n",
                        fmt::format("most bytes used on device {}", id),
                        memory->peak_bytes());
  }
  text += fmt::format("  {:<34}{:>16}{:>16}\n", "simulated time by task",
                      "runs", "ms");
  for (const auto& [name, time] : LongestFirst()) {
    text += fmt::format("    {:<32}{:>16}{:>16.3f}\n", name, time.n,
                        time.ns * 1e-6);
  }
  return text;
}

std::string ReportJson() {
  const Process& process = Process::Get();
  nlohmann::ordered_json json = {
      {"schema", 1}, {"profile", process.profile().name}, {"pid", getpid()}};
  for (const Row& row : Rows()) json[row.key] = row.value;
  json["devices"] = nlohmann::ordered_json::array();
  for (int id = 0; id < process.n_devices(); ++id) {
    const DeviceMemory* memory = process.MemoryIfAny(id);
    if (memory == nullptr) continue;
    json["devices"].push_back({{"device", id},
                               {"memory_bytes", memory->used_bytes()},
                               {"memory_peak_bytes", memory->peak_bytes()}});
  }
  json["tasks"] = nlohmann::ordered_json::array();
  for (const auto& [name, time] : LongestFirst()) {
    json["tasks"].push_back(
        {{"name", name}, {"runs", time.n}, {"simulated_ms", time.ns * 1e-6}});
  }
  return json.dump(2, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

bool WriteReport(const std::string& path) {
  if (path == "-") {
    const std::string text = ReportText();
    return write(STDERR_FILENO, text.data(), text.size()) ==
           static_cast<ssize_t>(text.size());
  }
  std::string name = path;
  const size_t mark = name.find("%p");
  if (mark != std::string::npos) {
    name.replace(mark, 2, std::to_string(getpid()));
  }
  std::ofstream out(name, std::ios::binary | std::ios::trunc);
  out << (name.ends_with(".json") ? ReportJson() : ReportText());
  out.close();
  return out.good();
}

}  // namespace cannsim
