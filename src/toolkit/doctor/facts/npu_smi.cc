// SPDX-License-Identifier: Apache-2.0
#include "toolkit/doctor/facts/npu_smi.h"

#include <cstdlib>
#include <sstream>

namespace belay::doctor {
namespace {

std::string Trim(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\r");
  if (start == std::string_view::npos) return "";
  return std::string(
      text.substr(start, text.find_last_not_of(" \t\r") - start + 1));
}

std::vector<std::string> Cells(const std::string& line) {
  std::vector<std::string> cells;
  for (size_t at = line.find('|'); at != std::string::npos;) {
    const size_t end = line.find('|', at + 1);
    if (end == std::string::npos) break;
    cells.push_back(Trim(std::string_view(line).substr(at + 1, end - at - 1)));
    at = end;
  }
  return cells;
}

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// A number of digits only; -1 else.
int64_t Number(const std::string& text) {
  if (text.empty() || text.size() > 15) return -1;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
  }
  return std::strtoll(text.c_str(), nullptr, 10);
}

bool IsHealth(const std::string& text) {
  return text == "OK" || text == "Warning" || text == "Alarm" ||
         text == "Critical" || text == "UNKNOWN" || text == "Unknown";
}

// "0000:C1:00.0"
bool IsBus(const std::string& text) {
  return text.size() >= 12 && text[4] == ':' && text[7] == ':';
}

// The last "used / total" of a cell: "0    / 0   3162 / 65536", "26838/ 32768".
void ReadMemory(const std::string& cell, SmiDevice& device) {
  const size_t slash = cell.rfind('/');
  if (slash == std::string::npos) return;
  const std::string before = Trim(std::string_view(cell).substr(0, slash));
  const size_t blank = before.find_last_of(" /");
  const int64_t used =
      Number(blank == std::string::npos ? before : before.substr(blank + 1));
  const int64_t total = Number(Trim(std::string_view(cell).substr(slash + 1)));
  if (used < 0 || total <= 0) return;
  device.used_mb = used;
  device.total_mb = total;
}

// "93.4  37   0 / 0": power, which the second die of a card does not say
// ("-", "NA"), and temperature.
void ReadPower(const std::string& cell, SmiDevice& device) {
  const auto words = Words(cell);
  if (words.size() < 2) return;
  char* end = nullptr;
  const double power = std::strtod(words[0].c_str(), &end);
  if (end != words[0].c_str() && *end == '\0' && power >= 0 && power < 1e6) {
    device.power_w = power;
  }
  device.temperature_c = Number(words[1]);
}

class SmiParser {
 public:
  SmiInfo Parse(std::string_view text) {
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) Line(line);
    return std::move(info_);
  }

 private:
  void Line(const std::string& line) {
    const std::vector<std::string> cells = Cells(line);
    if (cells.empty()) return;
    if (cells[0].starts_with("npu-smi ")) {
      const auto words = Words(cells[0]);
      if (words.size() > 1) info_.version = words[1];
      return;
    }
    for (const std::string& cell : cells) {
      if (cell.starts_with("Process id")) in_processes_ = true;
    }
    if (in_processes_) {
      Process(cells);
    } else {
      Device(cells);
    }
  }

  void Device(const std::vector<std::string>& cells) {
    // 950: "| 0 | Ascend950PR | OK | ...", else "| 0  910B3 | OK | ...".
    for (size_t i = 0; i + 1 < cells.size() && i < 3; ++i) {
      if (!IsHealth(cells[i + 1])) continue;
      std::string first;
      for (size_t c = 0; c <= i; ++c) first += cells[c] + " ";
      const auto words = Words(first);
      if (words.size() < 2 || Number(words[0]) < 0) return;
      SmiDevice device;
      device.npu = static_cast<int>(Number(words[0]));
      device.name = words[1];
      device.health = cells[i + 1];
      if (i + 2 < cells.size()) ReadPower(cells[i + 2], device);
      info_.devices.push_back(device);
      return;
    }
    if (info_.devices.empty() || cells.size() < 3) return;
    SmiDevice& device = info_.devices.back();
    for (size_t i = 1; i + 1 < cells.size(); ++i) {
      if (!IsBus(cells[i])) continue;
      device.bus = cells[i];
      // The first number before the memory: AICore(%).
      const auto load = Words(cells.back());
      if (load.size() > 1) device.ai_core_percent = Number(load[0]);
      ReadMemory(cells.back(), device);
    }
  }

  // "| 0  0 | 4123 | python3 | 26838 |"; 950 has no chip.
  void Process(const std::vector<std::string>& cells) {
    if (cells.size() < 4) return;
    const auto place = Words(cells[0]);
    SmiProcess process;
    process.npu = place.empty() ? -1 : static_cast<int>(Number(place[0]));
    process.pid = Number(cells[1]);
    process.name = cells[2];
    process.memory_mb = Number(cells[3]);
    if (process.npu >= 0 && process.pid >= 0) {
      info_.processes.push_back(process);
    }
  }

  SmiInfo info_;
  bool in_processes_ = false;
};

}  // namespace

SmiInfo ParseNpuSmi(std::string_view text) { return SmiParser().Parse(text); }

}  // namespace belay::doctor
