// SPDX-License-Identifier: Apache-2.0
// What the environment says. This is the only place of cannsim that reads it
// (docs/cannsim.md lists the variables).
#ifndef BELAY_CANNSIM_CONFIG_SETTINGS_H_
#define BELAY_CANNSIM_CONFIG_SETTINGS_H_

#include <string>
#include <vector>

#include "cannsim/config/profile.h"

namespace cannsim {

struct Settings {
  Profile profile;
  bool strict = false;  // report misuse that hardware forgives
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
// and ASCEND_RT_VISIBLE_DEVICES; profiles lie in ROOT/data/devices.
Settings SettingsFromEnvironment(const std::string& root);

// The ids of ASCEND_RT_VISIBLE_DEVICES as the runtime understands it: the list
// is cut at the first id that is not there. False when it does not ascend.
bool ParseVisibleDevices(const std::string& text, int n_devices,
                         std::vector<int>* devices);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_CONFIG_SETTINGS_H_
