// SPDX-License-Identifier: Apache-2.0
// npu-smi of the simulator: the tables and fields that programs parse, of the
// devices that the profile describes. It shows an idle machine: what other
// processes do in the simulator is not seen.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "cannsim/config/settings.h"

namespace {

using cannsim::Generation;
using cannsim::Profile;
using cannsim::Settings;

constexpr char kUsage[] =
    "npu-smi (cannsim): what the simulated devices are\n"
    "\n"
    "  npu-smi info                      table of all devices\n"
    "  npu-smi info -l                   list of cards\n"
    "  npu-smi info -m                   map of cards and chips\n"
    "  npu-smi info -t board  -i NPU     versions and names\n"
    "  npu-smi info -t common -i NPU     memory, use, clock\n"
    "  npu-smi info -t health -i NPU     health\n"
    "  npu-smi -v                        version\n"
    "\n"
    "Example: CANNSIM_PROFILE=Ascend950PR_9589 npu-smi info\n";

void Print(const std::string& text) { std::fputs(text.c_str(), stdout); }

// Devices that the card `card` holds.
int ChipsOf(const Settings& s, int card) {
  const int n = static_cast<int>(s.devices.size());
  return std::min(s.profile.chips_per_card,
                  n - card * s.profile.chips_per_card);
}

int CardsOf(const Settings& s) {
  const int n = static_cast<int>(s.devices.size());
  return (n + s.profile.chips_per_card - 1) / s.profile.chips_per_card;
}

unsigned long MiB(size_t bytes) { return bytes >> 20; }

std::string Bus(int device) {
  return fmt::format("0000:{:02X}:00.0", device + 1);
}

void Banner(const Profile& p) {
  const std::string rule(96, '-');
  Print(fmt::format("+{}+\n", rule));
  Print(fmt::format("| npu-smi {:<24} Version: {:<53}|\n", p.driver_version,
                    p.driver_version));
  Print(fmt::format("+{}+\n", rule));
}

void TableOf950(const Settings& s) {
  const Profile& p = s.profile;
  Print(
      "| NPU ID | Name             | Health        | Power(W)    Temp(C)"
      "           Hugepages-Usage(page) |\n");
  Print(
      "|        |                  | Bus-Id        | NPU Util(%) "
      "Memory-Usage(MB)  HBM-Usage(MB)         |\n");
  for (size_t i = 0; i < s.devices.size(); ++i) {
    const int id = s.devices[i];
    Print(fmt::format("| {:<6} | {:<16} | {:<13} | {:<11} {:<17} {:<21} |\n",
                      id, p.npu_smi_name, "OK", "200.0", 40, "0     / 0"));
    Print(fmt::format(
        "| {:<6} | {:<16} | {:<13} | {:<11} {:<17} {:<21} |\n", "", "", Bus(id),
        0, "0    / 0",
        fmt::format("{:<5} / {}", MiB(p.reserved_bytes), MiB(p.memory_bytes))));
  }
}

void TableOfOthers(const Settings& s) {
  const Profile& p = s.profile;
  const bool a3 = p.generation == Generation::kA3;
  Print(
      "| NPU   Name                | Health        | Power(W)    Temp(C)"
      "           Hugepages-Usage(page)|\n");
  const std::string columns =
      p.has_hbm ? "Memory-Usage(MB)  HBM-Usage(MB)       " : "Memory-Usage(MB)";
  Print(fmt::format("| {:<25} | Bus-Id        | AICore(%)   {:<40}|\n",
                    a3 ? "Chip  Phy-ID" : "Chip", columns));
  for (const int id : s.devices) {
    const int card = id / p.chips_per_card;
    const int chip = id % p.chips_per_card;
    const std::string used =
        fmt::format("{:<4} / {}", MiB(p.reserved_bytes), MiB(p.memory_bytes));
    // The second die of a card has no power of its own.
    Print(fmt::format("| {:<5} {:<19} | {:<13} | {:<11} {:<17} {:<21}|\n", card,
                      p.npu_smi_name, "OK", chip == 0 ? "96.0" : "-", 36,
                      "0    / 0"));
    Print(fmt::format("| {:<5} {:<19} | {:<13} | {:<11} {:<17} {:<21}|\n", chip,
                      a3 ? std::to_string(id) : "", Bus(id), 0,
                      p.has_hbm ? "0    / 0" : used, p.has_hbm ? used : ""));
  }
}

void Table(const Settings& s) {
  Banner(s.profile);
  if (s.profile.generation == Generation::kA5) {
    TableOf950(s);
  } else {
    TableOfOthers(s);
  }
  const std::string rule(96, '-');
  Print(fmt::format("+{}+\n", rule));
  for (int card = 0; card < CardsOf(s); ++card) {
    Print(fmt::format("| No running processes found in NPU {:<61}|\n", card));
  }
  Print(fmt::format("+{}+\n", rule));
}

void Field(const char* name, const std::string& value) {
  Print(fmt::format("\t{:<31}: {}\n", name, value));
}

void List(const Settings& s) {
  Field("Total Count", std::to_string(CardsOf(s)));
  for (int card = 0; card < CardsOf(s); ++card) {
    Print("\n");
    Field("NPU ID", std::to_string(card));
    Field("Chip Count", std::to_string(ChipsOf(s, card)));
  }
}

void Map(const Settings& s) {
  Print("\tNPU ID    Chip ID    Chip Logic ID    Chip Name\n");
  for (size_t i = 0; i < s.devices.size(); ++i) {
    const int id = s.devices[i];
    Print(fmt::format(
        "\t{:<10}{:<11}{:<17}Ascend {}\n", id / s.profile.chips_per_card,
        id % s.profile.chips_per_card, i, s.profile.npu_smi_name));
  }
}

int Query(const Settings& s, const std::string& what, int npu) {
  const Profile& p = s.profile;
  if (npu < 0 || npu >= CardsOf(s)) {
    Print("Invalid card id.\n");
    return 1;
  }
  Field("NPU ID", std::to_string(npu));
  if (what == "board") {
    Field("Chip Count", std::to_string(ChipsOf(s, npu)));
    Field("Software Version", p.driver_version);
    Field("Firmware Version", "cannsim");
    Field("Compatibility", "OK");
    Field("Chip Name", p.npu_smi_name);
    const size_t line = p.name.find('_');
    if (line != std::string::npos) Field("NPU Name", p.name.substr(line + 1));
    return 0;
  }
  if (what == "health") {
    Field("Health Status", "OK");
    Field("Error Code", "NA");
    Field("Error Information", "NA");
    return 0;
  }
  if (what == "common") {
    Field(p.has_hbm ? "HBM Capacity(MB)" : "DDR Capacity(MB)",
          std::to_string(MiB(p.memory_bytes)));
    Field("HBM Usage Rate(%)",
          std::to_string(100 * p.reserved_bytes / p.memory_bytes));
    Field("Aicore Usage Rate(%)", "0");
    Field("Aicore Count", std::to_string(p.n_cube_cores));
    Field("Temperature(C)", "36");
    Field("Chip Name", p.npu_smi_name);
    return 0;
  }
  std::fprintf(stderr, "npu-smi: -t %s is not simulated\n", what.c_str());
  return 2;
}

int Info(const Settings& s, const std::vector<std::string>& args) {
  if (args.empty()) {
    Table(s);
    return 0;
  }
  if (args.size() == 1 && args[0] == "-l") {
    List(s);
    return 0;
  }
  if (args.size() == 1 && args[0] == "-m") {
    Map(s);
    return 0;
  }
  std::string what;
  int npu = -1;
  for (size_t i = 0; i + 1 < args.size(); i += 2) {
    if (args[i] == "-t") what = args[i + 1];
    if (args[i] == "-i" && args[i + 1].size() < 6) {
      npu = std::atoi(args[i + 1].c_str());
    }
  }
  if (!what.empty() && npu >= 0) return Query(s, what, npu);
  std::fputs(kUsage, stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  if (!args.empty() && (args[0] == "-h" || args[0] == "--help")) {
    Print(kUsage);
    return 0;
  }
  const Settings settings =
      cannsim::SettingsFromEnvironment(cannsim::ToolkitRootOfProgram());
  if (!settings.error.empty()) {
    std::fprintf(stderr, "npu-smi: SIM-001 %s\n", settings.error.c_str());
    return 3;
  }
  if (!args.empty() && args[0] == "-v") {
    Print(
        fmt::format("npu-smi version: {}\n", settings.profile.driver_version));
    return 0;
  }
  if (args.empty() || args[0] != "info") {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (settings.devices.empty()) {
    Print("dcmi module initialize failed. ret is -8005\n");
    return 1;
  }
  args.erase(args.begin());
  return Info(settings, args);
}
