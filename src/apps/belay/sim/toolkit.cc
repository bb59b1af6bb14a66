// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/sim/toolkit.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/belay/shell/variable.h"
#include "base/error_ids.h"
#include "base/file.h"

namespace belay::apps {
namespace {

namespace fs = std::filesystem;

Status Missing(const fs::path& path, std::string expected) {
  return MakeError(kSysUnreadable, {.where = path.string(),
                                    .what = "",
                                    .expected = std::move(expected),
                                    .got = ""});
}

StatusOr<fs::path> FindRoot(const SimOptions& options) {
  std::error_code ignored;
  fs::path root = options.root;
  if (root.empty()) {
    const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
    root = program.parent_path().parent_path() / "cannsim";
  }
  root = fs::absolute(root, ignored).lexically_normal();
  const fs::path mark = root / "version.info";
  if (!fs::is_regular_file(mark, ignored)) {
    return Missing(mark, "the folder of cannsim");
  }
  return root;
}

// The names of the profiles that come with it, for the message.
std::string Known(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

// A file keeps its meaning when the program changes its folder.
StatusOr<std::string> FindProfile(const std::string& profile,
                                  const fs::path& root) {
  std::error_code ignored;
  const fs::path folder = root / "data" / "devices";
  if (profile.find('/') != std::string::npos || profile.ends_with(".json")) {
    const fs::path path = fs::absolute(profile, ignored);
    if (fs::is_regular_file(path, ignored)) return path.string();
    return Missing(profile, Known(folder));
  }
  if (fs::is_regular_file(folder / (profile + ".json"), ignored)) {
    return profile;
  }
  return Missing(profile, Known(folder));
}

// The folder of the custom operators that were built for a profile's
// generation; empty when there is none, or when the profile cannot be read,
// which the simulator itself says better.
std::string FindCustom(const std::string& profile, const fs::path& root) {
  const bool is_file =
      profile.find('/') != std::string::npos || profile.ends_with(".json");
  std::ifstream file(is_file ? fs::path(profile)
                             : root / "data" / "devices" / (profile + ".json"));
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("soc") || !json["soc"].is_object()) {
    return "";
  }
  const auto generation = json["soc"].find("generation");
  if (generation == json["soc"].end() || !generation->is_string()) return "";
  const fs::path folder =
      root / "opp" / "vendors" / ("cannsim_" + generation->get<std::string>());
  std::error_code ignored;
  return fs::is_directory(folder, ignored) ? folder.string() : "";
}

// The profile that a program will find in its environment.
std::string ProfileInUse(const std::string& chosen) {
  if (!chosen.empty()) return chosen;
  const std::string before = Variable("CANNSIM_PROFILE");
  return before.empty() ? "Ascend910B3" : before;
}

// A path that keeps its meaning when the program changes its folder.
std::string Absolute(const std::string& path) {
  std::error_code ignored;
  return path == "-" ? path : fs::absolute(path, ignored).string();
}

// All scripts as one text. It ends with a newline, so that it cannot be taken
// for the name of a file.
StatusOr<std::string> Script(const std::vector<std::string>& faults) {
  std::string script;
  for (const std::string& fault : faults) {
    std::error_code ignored;
    if (fs::is_regular_file(fault, ignored)) {
      BELAY_ASSIGN_OR_RETURN(const std::string text,
                             ReadFile(fault, size_t{1} << 16));
      script += text + "\n";
    } else {
      script += fault + "\n";
    }
  }
  return script;
}

// What is asked for beyond the device.
Status AddWishes(const SimOptions& options, SimVariables* variables) {
  if (options.strict_exit) {
    variables->emplace_back("CANNSIM_STRICT", "exit");
  } else if (options.strict) {
    variables->emplace_back("CANNSIM_STRICT", "1");
  }
  if (!options.faults.empty()) {
    BELAY_ASSIGN_OR_RETURN(std::string script, Script(options.faults));
    variables->emplace_back("CANNSIM_FAULTS", std::move(script));
  }
  if (!options.quirks.empty()) {
    std::string names;
    for (const std::string& quirk : options.quirks) {
      names += (names.empty() ? "" : ",") + quirk;
    }
    variables->emplace_back("CANNSIM_QUIRKS", std::move(names));
  }
  if (!options.report.empty()) {
    variables->emplace_back("CANNSIM_REPORT", Absolute(options.report));
  }
  if (!options.log.empty()) {
    variables->emplace_back("ASCEND_PROCESS_LOG_PATH", Absolute(options.log));
  }
  if (options.workspace) {
    variables->emplace_back("CANNSIM_WORKSPACE",
                            std::to_string(*options.workspace));
  }
  if (options.pace) variables->emplace_back("CANNSIM_PACE", "1");
  return absl::OkStatus();
}

std::string InFront(const std::string& path, const char* variable) {
  const std::string before = Variable(variable);
  return before.empty() ? path : path + ":" + before;
}

}  // namespace

StatusOr<SimVariables> SimEnvironment(const SimOptions& options) {
  BELAY_ASSIGN_OR_RETURN(const fs::path root, FindRoot(options));
  std::string profile;
  if (!options.profile.empty()) {
    BELAY_ASSIGN_OR_RETURN(profile, FindProfile(options.profile, root));
  }
  const std::string custom = FindCustom(ProfileInUse(profile), root);
  std::string libraries = (root / "lib64").string();
  if (!custom.empty()) libraries += ":" + custom + "/op_api/lib";
  SimVariables variables = {
      {"ASCEND_TOOLKIT_HOME", root.string()},
      {"ASCEND_HOME_PATH", root.string()},
      {"ASCEND_OPP_PATH", (root / "opp").string()},
      {"PATH", InFront((root / "bin").string(), "PATH")},
      {"LD_LIBRARY_PATH", InFront(libraries, "LD_LIBRARY_PATH")},
  };
  if (!custom.empty()) variables.emplace_back("ASCEND_CUSTOM_OPP_PATH", custom);
  if (!profile.empty()) variables.emplace_back("CANNSIM_PROFILE", profile);
  if (options.n_devices) {
    variables.emplace_back("CANNSIM_DEVICES",
                           std::to_string(*options.n_devices));
  }
  BELAY_RETURN_IF_ERROR(AddWishes(options, &variables));
  return variables;
}

}  // namespace belay::apps
