// SPDX-License-Identifier: Apache-2.0
#include "cannsim/config/hccl_settings.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace cannsim {
namespace {

// Leaves the value alone when the variable is not set.
void ReadNumber(const char* name, double low, double high, double* value,
                std::string* error) {
  const char* set = std::getenv(name);
  if (set == nullptr) return;
  const std::string_view text = set;
  double x = 0;
  const auto result =
      std::from_chars(text.data(), text.data() + text.size(), x);
  if (result.ec == std::errc() && result.ptr == text.data() + text.size() &&
      x >= low && x <= high) {
    *value = x;
  } else if (error->empty()) {
    *error = fmt::format("{} is \"{}\", not a number from {} to {}", name, text,
                         low, high);
  }
}

}  // namespace

HcclSettings HcclSettingsFromEnvironment() {
  HcclSettings settings;
  std::string* error = &settings.error;
  ReadNumber("HCCL_CONNECT_TIMEOUT", 120, 7200, &settings.connect_s, error);
  ReadNumber("HCCL_EXEC_TIMEOUT", 0, 2147483647, &settings.exec_s, error);
  ReadNumber("CANNSIM_HCCL_SECOND", 1e-6, 1, &settings.real_seconds, error);
  return settings;
}

}  // namespace cannsim
