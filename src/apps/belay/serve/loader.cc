// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "apps/belay/model/memory.h"
#include "apps/belay/serve/serve.h"
#include "checkpoint/fingerprint.h"
#include "engine/engine.h"

namespace belay::apps {
namespace {

constexpr size_t kMib = size_t{1} << 20;
constexpr int64_t kPageTokens = 128;

// "models/flash/" -> "flash"; "flash.gguf" -> "flash".
std::string NameOf(const std::string& path) {
  std::filesystem::path name(path);
  if (!name.has_filename()) name = name.parent_path();
  std::error_code error;
  const auto real = std::filesystem::canonical(name, error);
  if (!error) name = real;
  return name.extension() == ".gguf" ? name.stem().string()
                                     : name.filename().string();
}

engine::EngineOptions EngineOptionsFor(const ServeArgs& args,
                                       const LoadedModel& model) {
  const spec::ModelConfig& config = model.config();
  engine::EngineOptions options;
  options.n_slots = args.max_batch;
  options.max_context =
      std::min<int64_t>(args.max_context, config.max_positions);
  options.n_pages = (args.cache_tokens + kPageTokens - 1) / kPageTokens;
  options.max_tokens_per_step = args.tokens_per_step;
  options.prefill_tokens_per_step = args.prefill_per_step;
  options.n_draft_tokens = args.speculative ? args.draft_tokens : 0;
  options.budget_bytes =
      args.memory_gib > 0
          ? static_cast<size_t>(args.memory_gib * static_cast<double>(1 << 30))
          : AvailableBytes(*model.backend);
  options.prefix_cache_bytes =
      static_cast<size_t>(args.prefix_cache_mib) * kMib;
  options.spill_folder = args.spill_folder;
  options.spill_bytes =
      static_cast<size_t>(args.spill_gib * static_cast<double>(1 << 30));
  options.reserve_bytes = static_cast<size_t>(args.reserve_mib) * kMib;
  return options;
}

std::vector<std::pair<std::string, uint64_t>> MemoryOf(
    const LoadedModel& model, const spec::Layout& layout) {
  std::vector<std::pair<std::string, uint64_t>> memory = {
      {"weights", model.weight_bytes()}};
  for (size_t i = 0; i < layout.bytes_by_kind.size(); ++i) {
    const auto kind = static_cast<spec::MemoryKind>(i);
    memory.emplace_back(spec::MemoryKindName(kind), layout.bytes_by_kind[i]);
  }
  return memory;
}

StatusOr<server::Model> Load(const ServeArgs& args, const Context& context,
                             const std::function<void(double)>& progress) {
  server::Model model;
  BELAY_ASSIGN_OR_RETURN(const Speaker speaker,
                         OpenSpeaker(args.model.folder, args.talk));
  BELAY_ASSIGN_OR_RETURN(std::shared_ptr<LoadedModel> loaded,
                         LoadModel(args.model, context, progress));
  engine::EngineOptions options = EngineOptionsFor(args, *loaded);
  if (!options.spill_folder.empty()) {
    BELAY_ASSIGN_OR_RETURN(options.model_fingerprint,
                           checkpoint::Fingerprint(args.model.folder));
  }
  BELAY_ASSIGN_OR_RETURN(
      model.engine,
      engine::Engine::Create({&loaded->config(), loaded->weights.get(),
                              loaded->backend.get(), &loaded->communicator},
                             options));
  server::ModelInfo& info = model.info;
  info.name = args.server.model_name.empty() ? NameOf(args.model.folder)
                                             : args.server.model_name;
  info.tokenizer = speaker.tokenizer;
  info.revision = speaker.revision;
  info.eos_ids = loaded->eos_ids;
  info.vocab_size = static_cast<int32_t>(loaded->config().vocab_size);
  info.max_context = options.max_context;
  info.n_slots = options.n_slots;
  info.created_unix_s = std::chrono::duration_cast<std::chrono::seconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count();
  info.memory_bytes = MemoryOf(*loaded, model.engine->layout());
  model.owner = std::move(loaded);
  return model;
}

}  // namespace

server::Loader LoaderFor(const ServeArgs& args, const Context& context) {
  return [args, &context](const std::function<void(double)>& progress) {
    return Load(args, context, progress);
  };
}

}  // namespace belay::apps
