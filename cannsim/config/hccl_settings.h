// SPDX-License-Identifier: Apache-2.0
// What the environment says to HCCL.
#ifndef BELAY_CANNSIM_CONFIG_HCCL_SETTINGS_H_
#define BELAY_CANNSIM_CONFIG_HCCL_SETTINGS_H_

#include <string>

namespace cannsim {

struct HcclSettings {
  double connect_s = 120;   // HCCL_CONNECT_TIMEOUT, 120 to 7200
  double exec_s = 1836;     // HCCL_EXEC_TIMEOUT, 0: for ever
  double real_seconds = 1;  // CANNSIM_HCCL_SECOND: a second of these takes
  std::string error;        // why a value is refused, or ""
};

// Read for each communicator, as programs set variables late.
HcclSettings HcclSettingsFromEnvironment();

}  // namespace cannsim

#endif  // BELAY_CANNSIM_CONFIG_HCCL_SETTINGS_H_
