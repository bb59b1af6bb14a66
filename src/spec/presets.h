// SPDX-License-Identifier: Apache-2.0
// Models by name: the releases, and small ones of the same architecture.
#ifndef BELAY_SPEC_PRESETS_H_
#define BELAY_SPEC_PRESETS_H_

#include <span>
#include <string_view>

#include "base/error.h"
#include "spec/config.h"

namespace belay::spec {

struct Preset {
  std::string_view name;
  std::string_view about;  // one line, English
  ModelConfig (*make)();
};

// flash, pro, flash-base, pro-base, golden, golden-base, demo, tiny, small,
// mid, article, flash-slice. Each passes CheckConfig.
std::span<const Preset> Presets();

// ARG-001 with the known names when there is no such preset.
StatusOr<ModelConfig> PresetConfig(std::string_view name);

}  // namespace belay::spec

#endif  // BELAY_SPEC_PRESETS_H_
