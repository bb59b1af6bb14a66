// SPDX-License-Identifier: Apache-2.0
// What a belay_model is: a checkpoint, its engine and its tokenizer.
#ifndef BELAY_CAPI_MODEL_H_
#define BELAY_CAPI_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "capi/belay.h"
#include "capi/pump.h"
#include "checkpoint/checkpoint.h"
#include "model/weights.h"
#include "ops/backend.h"
#include "ops/communicator.h"
#include "text/chat/render.h"
#include "text/tokenizer.h"

namespace belay::capi {

// Members in the order in which they must be destroyed last.
struct Model {
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<checkpoint::Checkpoint> checkpoint;
  std::unique_ptr<ops::Backend> backend;
  std::unique_ptr<model::ModelWeights> weights;
  ops::SingleRank communicator;
  std::unique_ptr<Pump> pump;  // has the engine

  std::shared_ptr<const text::Tokenizer> tokenizer;
  text::EncodingRevision revision = text::EncodingRevision::kInitial;
  std::vector<int32_t> eos_ids;
};

StatusOr<std::shared_ptr<Model>> LoadModel(const std::string& folder,
                                           const belay_model_options& options);

}  // namespace belay::capi

#endif  // BELAY_CAPI_MODEL_H_
