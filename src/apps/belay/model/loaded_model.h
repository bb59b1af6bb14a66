// SPDX-License-Identifier: Apache-2.0
// What every command that runs a model needs: checkpoint, back end, weights.
#ifndef BELAY_APPS_BELAY_MODEL_LOADED_MODEL_H_
#define BELAY_APPS_BELAY_MODEL_LOADED_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/belay/shell/context.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "base/topology.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf/model.h"
#include "checkpoint/pack/pack_file.h"
#include "model/weights.h"
#include "ops/backend.h"
#include "ops/communicator.h"

namespace belay::apps {

struct ModelArgs {
  std::string folder;  // or a GGUF file
  std::string backend = "cpu";
  std::string numerics = "official";
  std::string activations = "official";
  std::optional<int> threads;  // none: one for each physical core of ours
  bool no_pin = false;
  bool strict = false;
  std::string simd_target;       // "" = the best that this CPU has
  int32_t device = 0;            // of cann
  int32_t device_timeout = 600;  // seconds of a step of cann
};

// --model, --backend, --numerics, --activations, --threads, --no-pin, --strict,
// --simd-target, --device, --device-timeout.
void AddModelOptions(CLI::App& command, ModelArgs& args,
                     const Context& context);

// A model ready to run. Members in the order in which they must be destroyed
// last.
struct LoadedModel {
  // One of the three, by what the path is.
  std::unique_ptr<checkpoint::Checkpoint> checkpoint;
  std::unique_ptr<checkpoint::gguf::GgufModel> gguf;
  std::unique_ptr<checkpoint::PackFile> pack;
  std::unique_ptr<Topology> topology;  // null when the system does not tell
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<ops::Backend> backend;
  std::unique_ptr<model::ModelWeights> weights;
  ops::SingleRank communicator;
  std::vector<int32_t> eos_ids;  // that end a turn
  double load_seconds = 0;

  const spec::ModelConfig& config() const {
    if (pack != nullptr) return pack->config();
    return gguf != nullptr ? gguf->config() : checkpoint->config();
  }
  uint64_t weight_bytes() const;  // of the tensors in use
  // A tensor of the one rank by its official name.
  StatusOr<StoredView> Find(std::string_view name) const;
  // Takes the files' pages out of this process's memory.
  void ReleasePages() const;
};

// Opens, checks and binds, with progress on stderr and a warning for what the
// checkpoint holds beside the model. `on_progress` hears the part of 1 that is
// done.
StatusOr<std::unique_ptr<LoadedModel>> LoadModel(
    const ModelArgs& args, const Context& context,
    const std::function<void(double)>& on_progress = {});

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_MODEL_LOADED_MODEL_H_
