// SPDX-License-Identifier: Apache-2.0
#include "support/test_model.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "backends/ref/ref.h"
#include "support/value.h"
#ifdef BELAY_TEST_CANN
#include "backends/cann/cann.h"
#endif
#ifdef BELAY_TEST_CPU
#include "backends/cpu/cpu.h"
#include "kernels/simd_target.h"
#endif

namespace belay::test {
namespace {

std::unique_ptr<ops::Backend> MakeBackend(const std::string& name,
                                          const ops::Numerics& numerics,
                                          [[maybe_unused]] ThreadPool* pool) {
#ifdef BELAY_TEST_CPU
  if (name.starts_with("cpu")) {
    const std::string target = name.size() > 4 ? name.substr(4) : "";
    return Value(cpu::Create(numerics, pool, {.simd_target = target}));
  }
#endif
#ifdef BELAY_TEST_CANN
  if (name == "cann") {
    cann::Options cann_options;
    cann_options.variable = [](const char* variable) -> std::string {
      if (std::string(variable) == "ASCEND_HOME_PATH") return BELAY_CANNSIM;
      // Fused operators of a package, when the test is run with one.
      const bool custom = std::string(variable) == "ASCEND_CUSTOM_OPP_PATH";
      const char* value = custom ? std::getenv(variable) : nullptr;
      return value == nullptr ? "" : value;
    };
    return Value(cann::Create(numerics, cann_options));
  }
#endif
  BELAY_CHECK(name == "ref");
  return Value(ref::Create(numerics));
}

}  // namespace

std::vector<std::string> BackendNames() {
  const char* only = std::getenv("BELAY_TEST_BACKEND");
  if (only != nullptr) return {only};
#ifdef BELAY_TEST_CPU
  return {"ref", "cpu"};
#else
  return {"ref"};
#endif
}

std::vector<std::string> BackendAndTargetNames() {
  std::vector<std::string> names = BackendNames();
  if (names.back() != "cpu") return names;
#ifdef BELAY_TEST_CPU
  const auto targets = kernels::SimdTargets();
  for (size_t i = 1; i < targets.size(); ++i) {  // the best is "cpu"
    names.push_back("cpu_" + std::string(targets[i]));
    std::replace(names.back().begin(), names.back().end(), '-', '_');
  }
#endif
  return names;
}

bool HasInt8Activations() {
#ifdef BELAY_TEST_CPU
  return kernels::Avx512Bf16Allowed();
#else
  return false;
#endif
}

TestModel::TestModel(const std::string& path, const ModelOptions& options)
    : rank_(options.rank), pool_(Value(ThreadPool::Create(options.n_threads))) {
  if (std::filesystem::is_directory(path)) {
    checkpoint_ = Value(checkpoint::Checkpoint::Open(path));
    config_ = checkpoint_->config();
  } else {
    gguf_ = Value(checkpoint::gguf::GgufModel::Open(path));
    config_ = gguf_->config();
  }
  if (options.edit_config) options.edit_config(config_);
  ops::Numerics numerics;
  numerics.mode =
      options.exact ? ops::NumericsMode::kExact : ops::NumericsMode::kOfficial;
  numerics.int8_activations = options.int8_activations;
  numerics.act_block = config_.fp8_block;
  numerics.kv_group = config_.kv_quant_group;
  numerics.index_group = config_.index_quant_group;
  numerics.norm_eps = config_.norm_eps;
  backend_ = MakeBackend(options.backend, numerics, pool_.get());
  if (options.wrap_backend) {
    backend_ = options.wrap_backend(std::move(backend_));
  }
  const auto lookup = [this](std::string_view name) -> StatusOr<StoredView> {
    if (gguf_ != nullptr) return gguf_->Find(name);
    return checkpoint_->Slice(name, rank_);
  };
  weights_ = Value(model::BindWeights(config_, rank_, lookup, *backend_));
}

}  // namespace belay::test
