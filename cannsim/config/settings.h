// SPDX-License-Identifier: Apache-2.0
// What the environment says. This is the only place of cannsim that reads it
// (docs/cannsim.md lists the variables).
#ifndef BELAY_CANNSIM_CONFIG_SETTINGS_H_
#define BELAY_CANNSIM_CONFIG_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cannsim/config/profile.h"

namespace cannsim {

struct Settings {
  Profile profile;
  bool strict = false;           // report misuse that hardware forgives
  bool strict_exit = false;      // and end with exit code 1 when there was any
  std::string faults;            // a fault script, as text
  std::string quirks;            // names, with commas
  std::string report;            // file for the report at the end; "" = none
  uint64_t seed = 1;             // of the jitter of copies
  uint64_t workspace_bytes = 0;  // that every operator asks for
  bool pace = false;             // tasks take as long as they are said to
  // Physical ids of the devices that the process sees as 0..n-1.
  std::vector<int> devices;
  // Why nothing works: a sentence, or "". Kept, because the C interface has
  // no place for it before the first call.
  std::string error;
  bool bad_visible_list = false;  // ASCEND_RT_VISIBLE_DEVICES not ascending
};

// The folder of the toolkit that holds this library: two above the file that
// `symbol` is in.
std::string ToolkitRoot(const void* symbol);
// The same for the program that runs: its file, whatever it was called as.
std::string ToolkitRootOfProgram();

// Reads CANNSIM_PROFILE (default Ascend910B3), CANNSIM_DEVICES, CANNSIM_STRICT
// (1, or "exit"), CANNSIM_FAULTS (a script, or the file that holds it),
// CANNSIM_QUIRKS, CANNSIM_REPORT, CANNSIM_SEED, CANNSIM_WORKSPACE,
// CANNSIM_PACE and
// ASCEND_RT_VISIBLE_DEVICES; profiles lie in ROOT/data/devices.
Settings SettingsFromEnvironment(const std::string& root);

// The ids of ASCEND_RT_VISIBLE_DEVICES as the runtime understands it: the list
// is cut at the first id that is not there. False when it does not ascend.
bool ParseVisibleDevices(const std::string& text, int n_devices,
                         std::vector<int>* devices);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_CONFIG_SETTINGS_H_
