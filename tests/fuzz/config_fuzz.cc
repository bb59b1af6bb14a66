// SPDX-License-Identifier: Apache-2.0
// Any bytes as config.json: an error with an id, or a config that everything
// else in spec can work with.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "spec/config.h"
#include "spec/layout.h"
#include "spec/tensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  namespace spec = belay::spec;
  const std::string_view text(reinterpret_cast<const char*>(data), n_bytes);
  const auto config = spec::ParseConfig(text, "fuzz");
  if (!config.ok()) {
    BELAY_CHECK(!belay::ErrorIdOf(config.status()).empty());
    return 0;
  }
  const auto again = spec::ParseConfig(spec::ConfigToJson(*config), "again");
  BELAY_CHECK(again.ok());
  BELAY_CHECK(*again == *config);
  (void)spec::RopeFrequencies(*config, true);
  // The whole table of a model with 4096 layers of 65536 experts would take
  // minutes; its sizes are checked with few of them.
  spec::ModelConfig small = *config;
  if (small.n_layers <= 16 && small.n_routed_experts <= 64) {
    BELAY_CHECK(!spec::ExpectedTensors(small).empty());
    (void)spec::MakeLayout(small, spec::Rank{}, spec::LayoutOptions{});
  }
  return 0;
}
