// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/faults/quirks.h"

#include <array>

namespace cannsim {
namespace {

struct Row {
  const char* name;
  const char* id;
};

constexpr std::array<Row, kQuirkCount> kRows = {{
    {"early-malloc", "SIM-020"},
    {"fragmented-malloc", "SIM-021"},
    {"first-run", "SIM-022"},
    {"expert-index", "SIM-023"},
    {"nan-address", "SIM-024"},
    {"slow-last-dim", "SIM-025"},
    {"eps-underflow", "SIM-026"},
    {"dynamic-k", "SIM-027"},
    {"cache-order", "SIM-028"},
}};

std::string Known() {
  std::string names = "all";
  for (const Row& row : kRows) names += std::string(", ") + row.name;
  return names;
}

}  // namespace

const char* QuirkName(Quirk quirk) {
  return kRows[static_cast<size_t>(quirk)].name;
}

const char* QuirkId(Quirk quirk) {
  return kRows[static_cast<size_t>(quirk)].id;
}

bool ParseQuirks(std::string_view text, uint32_t* mask, std::string* error) {
  *mask = 0;
  while (!text.empty()) {
    const size_t end = text.find_first_of(", ");
    const std::string_view name = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (name.empty()) continue;
    uint32_t bits = name == "all" ? (1U << kQuirkCount) - 1 : 0;
    for (size_t i = 0; i < kRows.size(); ++i) {
      if (name == kRows[i].name) bits |= 1U << i;
    }
    if (bits == 0) {
      *error = "no quirk is called \"" + std::string(name.substr(0, 40)) +
               "\"; there are: " + Known();
      return false;
    }
    *mask |= bits;
  }
  return true;
}

}  // namespace cannsim
