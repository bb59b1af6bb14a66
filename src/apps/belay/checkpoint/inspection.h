// SPDX-License-Identifier: Apache-2.0
// What belay inspect finds out, apart from how it is shown.
#ifndef BELAY_APPS_BELAY_CHECKPOINT_INSPECTION_H_
#define BELAY_APPS_BELAY_CHECKPOINT_INSPECTION_H_

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/belay/shell/context.h"
#include "checkpoint/checkpoint.h"
#include "spec/config.h"
#include "spec/cost.h"
#include "spec/tensors.h"

namespace belay::apps {

struct TensorSum {
  int64_t n_tensors = 0;
  uint64_t bytes = 0;
  int64_t parameters = 0;

  void Add(const spec::ExpectedTensor& tensor);
};

struct Inspection {
  std::string source;   // the folder, or "preset NAME"
  int64_t n_files = 0;  // 0: a preset, no files
  spec::ModelConfig config;
  checkpoint::CheckpointReport report;

  TensorSum total;
  std::array<TensorSum, spec::kFamilies> families;
  std::map<DType, TensorSum> dtypes;
  TensorSum mtp;  // part of the sums above
  spec::ParameterCounts parameters;

  RowFormat kv_row;
  RowFormat index_row;
  spec::CacheCost cache;  // without MTP
  spec::StepCost decode;  // one token at decode_context
  int64_t decode_context = 0;
};

Inspection Inspect(std::string source, const spec::ModelConfig& config,
                   const std::vector<spec::ExpectedTensor>& tensors);

nlohmann::ordered_json InspectionToJson(const Inspection& inspection);

void PrintInspection(const Inspection& inspection, const Context& context);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_CHECKPOINT_INSPECTION_H_
