// SPDX-License-Identifier: Apache-2.0
// A device profile: what the simulator knows of one chip. The files are
// data/devices/*.json (docs/cannsim.md), with the source of each figure.
#ifndef BELAY_CANNSIM_CONFIG_PROFILE_H_
#define BELAY_CANNSIM_CONFIG_PROFILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cannsim {

// Which operators exist and which rules of memory hold.
enum class Generation { k310P, kA2, kA3, kA5 };

struct Profile {
  std::string name;  // the SoC name that aclrtGetSocName returns
  Generation generation = Generation::kA2;
  std::string short_name;    // "Ascend910B"
  std::string npu_smi_name;  // as npu-smi prints it
  int npu_arch = 0;          // 2201, 3510, 2002
  int chips_per_card = 1;

  int n_cube_cores = 0;
  int n_vector_cores = 0;
  int n_ai_cpu_cores = 0;

  bool has_hbm = true;  // false: LPDDR
  size_t memory_bytes = 0;
  size_t reserved_bytes = 0;  // of memory_bytes, not for programs
  size_t l2_bytes = 0;
  size_t ub_bytes = 0;  // a vector core
  size_t huge_page_bytes = size_t{2} << 20;

  size_t address_alignment = 64;
  size_t size_rounding = 32;
  size_t extra_bytes = 0;  // after each allocation

  int n_events = 65536;  // at most, a device
  int n_streams = 1984;

  double memory_bytes_per_s = 0;
  double host_link_bytes_per_s = 0;
  double peer_link_bytes_per_s = 0;  // between devices; 0: not known
  double fp16_flops = 0;
  double launch_us = 0;
  double copy_latency_us = 0;
  double copy_jitter_us = 0;  // a copy takes up to this much more or less

  int n_devices = 8;
  std::string driver_version;
};

// Parses the text of a profile. False and a sentence in `error` when a field
// is missing or out of range; hostile text is refused, never a crash.
bool ParseProfile(std::string_view text, Profile* profile, std::string* error);

// Reads `name` (a file if it has a slash or ends with .json, else
// FOLDER/name.json).
bool LoadProfile(const std::string& name, const std::string& folder,
                 Profile* profile, std::string* error);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_CONFIG_PROFILE_H_
