// SPDX-License-Identifier: Apache-2.0
#include "cannsim/config/settings.h"

#include <dlfcn.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>

namespace cannsim {
namespace {

std::string Variable(const char* name, const char* otherwise = "") {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

template <typename T>
bool ParseInt(std::string_view text, T* value) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *value);
  return result.ec == std::errc() && result.ptr == end;
}

int DeviceCount(const Profile& profile, std::string* error) {
  const std::string text = Variable("CANNSIM_DEVICES");
  if (text.empty()) return profile.n_devices;
  int n = 0;
  if (!ParseInt(text, &n) || n < 0 || n > 64) {
    *error = "CANNSIM_DEVICES must be a number from 0 to 64";
    return 0;
  }
  return n;
}

// A script, or what is in the file of that name. More than a script may hold
// is read, so that the parser can say so.
std::string FaultText() {
  std::string text = Variable("CANNSIM_FAULTS");
  std::error_code ignored;
  if (text.size() > 4096 || text.find('\n') != std::string::npos ||
      !std::filesystem::is_regular_file(text, ignored)) {
    return text;
  }
  std::ifstream in(text, std::ios::binary);
  std::string script(size_t{1} << 17, '\0');
  in.read(script.data(), static_cast<std::streamsize>(script.size()));
  script.resize(static_cast<size_t>(in.gcount()));
  return script;
}

void ReadWishes(Settings* settings) {
  const std::string strict = Variable("CANNSIM_STRICT");
  settings->strict_exit = strict == "exit";
  settings->strict = strict == "1" || settings->strict_exit;
  settings->faults = FaultText();
  settings->quirks = Variable("CANNSIM_QUIRKS");
  settings->report = Variable("CANNSIM_REPORT");
  settings->pace = Variable("CANNSIM_PACE") == "1";
  const std::string seed = Variable("CANNSIM_SEED");
  if (!seed.empty() && !ParseInt(seed, &settings->seed)) {
    settings->error = "CANNSIM_SEED must be a number from 0 on";
  }
  constexpr uint64_t kMaxWorkspace = uint64_t{1} << 30;
  const std::string workspace = Variable("CANNSIM_WORKSPACE");
  if (!workspace.empty() && (!ParseInt(workspace, &settings->workspace_bytes) ||
                             settings->workspace_bytes > kMaxWorkspace)) {
    settings->error = "CANNSIM_WORKSPACE must be a number of bytes up to 2^30";
  }
}

}  // namespace

std::string ToolkitRoot(const void* symbol) {
  Dl_info info{};
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return ".";
  std::error_code ignored;
  const auto file = std::filesystem::canonical(info.dli_fname, ignored);
  return file.parent_path().parent_path().string();
}

std::string ToolkitRootOfProgram() {
  std::error_code ignored;
  const auto file = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return file.parent_path().parent_path().string();
}

bool ParseVisibleDevices(const std::string& text, int n_devices,
                         std::vector<int>* devices) {
  devices->clear();
  std::string_view rest = text;
  int last = -1;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    int id = -1;
    if (!ParseInt(rest.substr(0, comma), &id) || id < 0 || id >= n_devices) {
      return true;  // cut here
    }
    if (id <= last) {
      devices->clear();
      return false;
    }
    devices->push_back(id);
    last = id;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return true;
}

Settings SettingsFromEnvironment(const std::string& root) {
  Settings settings;
  ReadWishes(&settings);
  if (!settings.error.empty()) return settings;
  LoadProfile(Variable("CANNSIM_PROFILE", "Ascend910B3"),
              root + "/data/devices", &settings.profile, &settings.error);
  if (!settings.error.empty()) {
    settings.error = "CANNSIM_PROFILE: " + settings.error;
    return settings;
  }
  const int n = DeviceCount(settings.profile, &settings.error);
  const char* visible = std::getenv("ASCEND_RT_VISIBLE_DEVICES");
  if (visible != nullptr) {
    settings.bad_visible_list =
        !ParseVisibleDevices(visible, n, &settings.devices);
  } else {
    settings.devices.resize(static_cast<size_t>(n));
    std::iota(settings.devices.begin(), settings.devices.end(), 0);
  }
  return settings;
}

}  // namespace cannsim
