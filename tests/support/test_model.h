// SPDX-License-Identifier: Apache-2.0
// A checkpoint opened, bound and ready to run, in one line of a test.
#ifndef BELAY_TESTS_SUPPORT_TEST_MODEL_H_
#define BELAY_TESTS_SUPPORT_TEST_MODEL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf/model.h"
#include "model/weights.h"
#include "ops/backend.h"
#include "ops/communicator.h"
#include "spec/config.h"
#include "spec/rank.h"

namespace belay::test {

// The back ends of this build that run on the host: "ref", and "cpu" if built;
// only the one that BELAY_TEST_BACKEND names when it is set.
std::vector<std::string> BackendNames();
// The same and, as "cpu_AVX2", cpu held to each lesser instruction set that
// this machine has.
std::vector<std::string> BackendAndTargetNames();

// Whether this CPU can run with ModelOptions::int8_activations.
bool HasInt8Activations();

struct ModelOptions {
  std::string backend = "ref";
  bool exact = false;
  bool int8_activations = false;  // backend "cpu"
  int n_threads = 2;
  spec::Rank rank = {};
  // For wrong models on purpose: changes the config after the checkpoint has
  // been checked, and puts something between model and back end.
  std::function<void(spec::ModelConfig&)> edit_config = {};
  std::function<std::unique_ptr<ops::Backend>(std::unique_ptr<ops::Backend>)>
      wrap_backend = {};
};

// Ends the program when the checkpoint does not load.
class TestModel {
 public:
  // `path`: a checkpoint folder, or a GGUF file (of one rank).
  TestModel(const std::string& path, const ModelOptions& options);

  const spec::ModelConfig& config() const { return config_; }
  const model::ModelWeights& weights() const { return *weights_; }
  const spec::Rank& rank() const { return rank_; }
  ops::Backend& backend() { return *backend_; }

  // {config, weights, backend, communicator} for Engine or RunTrace. A back
  // end has one workspace: one engine, trace or Stepper of a model at a time.
  template <typename Parts>
  Parts parts() {
    Parts parts;
    parts.config = &config_;
    parts.weights = weights_.get();
    parts.backend = backend_.get();
    parts.communicator = &single_;
    return parts;
  }

 private:
  spec::Rank rank_;
  std::unique_ptr<checkpoint::Checkpoint> checkpoint_;  // one of the two
  std::unique_ptr<checkpoint::gguf::GgufModel> gguf_;
  spec::ModelConfig config_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<ops::Backend> backend_;
  std::unique_ptr<model::ModelWeights> weights_;
  ops::SingleRank single_;
};

}  // namespace belay::test

#endif  // BELAY_TESTS_SUPPORT_TEST_MODEL_H_
