// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/make_model.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error_ids.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/random_tensors.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shards.h"
#include "spec/tensors.h"

namespace belay::checkpoint {
namespace {

using spec::ExpectedTensor;

// Bytes that one task fills, and tasks of one round before they are written.
constexpr size_t kTaskBytes = size_t{1} << 20;
constexpr size_t kTasksPerRound = 16;

// Elements of a piece: a multiple of 8, and of a row of a tid2eid table.
int64_t ElementsPerTask(const ExpectedTensor& tensor) {
  const auto elements =
      static_cast<int64_t>(kTaskBytes / DtypeBytes(tensor.dtype));
  if (tensor.role != spec::Role::kTable) return elements;
  const int64_t unit = 8 * tensor.shape[1];
  return std::max<int64_t>(elements / unit, 1) * unit;
}

// Makes tensors piece by piece and hands the pieces on in order.
class Generator {
 public:
  explicit Generator(const MakeModelOptions& options) : options_(options) {}

  template <typename Consume>  // Status(int64_t first_element, span<byte>)
  Status Run(const ExpectedTensor& tensor, const Consume& consume) {
    const int64_t n = tensor.shape.n_elements();
    const int64_t per_task = ElementsPerTask(tensor);
    const auto per_round = per_task * static_cast<int64_t>(kTasksPerRound);
    const size_t element_bytes = DtypeBytes(tensor.dtype);
    for (int64_t begin = 0; begin < n; begin += per_round) {
      const int64_t count = std::min(per_round, n - begin);
      buffer_.resize(static_cast<size_t>(count) * element_bytes);
      Fill(tensor, begin, count, per_task);
      BELAY_RETURN_IF_ERROR(consume(begin, std::span(buffer_)));
      done_ += buffer_.size();
      if (options_.progress) {
        BELAY_RETURN_IF_ERROR(options_.progress(done_, total_));
      }
    }
    return absl::OkStatus();
  }

  void set_total(uint64_t total) { total_ = total; }

 private:
  void Fill(const ExpectedTensor& tensor, int64_t begin, int64_t count,
            int64_t per_task) {
    const size_t element_bytes = DtypeBytes(tensor.dtype);
    const auto fill = [&](size_t task, int) {
      const int64_t first = static_cast<int64_t>(task) * per_task;
      const int64_t n = std::min(per_task, count - first);
      FillRandom(
          options_.config, tensor, options_.seed, begin + first,
          std::span(buffer_).subspan(static_cast<size_t>(first) * element_bytes,
                                     static_cast<size_t>(n) * element_bytes));
    };
    const auto n_tasks = static_cast<size_t>((count + per_task - 1) / per_task);
    if (options_.pool != nullptr) {
      options_.pool->ParallelFor(n_tasks, fill);
    } else {
      for (size_t task = 0; task < n_tasks; ++task) fill(task, 0);
    }
  }

  const MakeModelOptions& options_;
  std::vector<std::byte> buffer_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

using Tensors = std::vector<const ExpectedTensor*>;

// In the order of the forward pass; a tensor larger than the limit is alone.
std::vector<Tensors> SplitIntoShards(const std::vector<ExpectedTensor>& all,
                                     uint64_t max_bytes) {
  std::vector<Tensors> shards(1);
  uint64_t bytes = 0;
  for (const ExpectedTensor& tensor : all) {
    if (!shards.back().empty() && bytes + tensor.bytes() > max_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(&tensor);
    bytes += tensor.bytes();
  }
  return shards;
}

Status WriteFile(const std::string& path, const Tensors& tensors,
                 Generator& generator) {
  std::vector<TensorSpec> specs;
  std::unordered_map<std::string_view, const ExpectedTensor*> by_name;
  for (const ExpectedTensor* tensor : tensors) {
    specs.push_back({tensor->name, tensor->dtype, tensor->shape});
    by_name[tensor->name] = tensor;
  }
  BELAY_ASSIGN_OR_RETURN(
      auto writer,
      SafetensorsWriter::Create(path, std::move(specs), {{"format", "pt"}}));
  for (const TensorSpec& spec : writer->specs()) {
    BELAY_RETURN_IF_ERROR(generator.Run(
        *by_name[spec.name], [&](int64_t, std::span<std::byte> bytes) {
          return writer->Append(bytes);
        }));
  }
  return writer->Finish();
}

Status PrepareFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return MakeError(kSysWriteFailed, {folder, error.message(), "", ""});
  }
  for (const char* name : {kSingleFileName, kIndexFileName}) {
    if (!std::filesystem::exists(std::filesystem::path(folder) / name, error)) {
      continue;
    }
    return MakeError(kArgUsage, {folder, "the folder has a checkpoint already",
                                 "no " + std::string(name), ""});
  }
  return absl::OkStatus();
}

std::string Join(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

uint64_t TotalBytes(const std::vector<ExpectedTensor>& tensors) {
  uint64_t total = 0;
  for (const ExpectedTensor& tensor : tensors) total += tensor.bytes();
  return total;
}

}  // namespace

StatusOr<MadeModel> MakeModel(const MakeModelOptions& options) {
  BELAY_RETURN_IF_ERROR(spec::CheckConfig(options.config, "config"));
  BELAY_RETURN_IF_ERROR(PrepareFolder(options.folder));
  const auto tensors = spec::ExpectedTensors(options.config);
  const auto shards = SplitIntoShards(tensors, options.max_shard_bytes);
  const auto n_shards = static_cast<int>(shards.size());

  MadeModel made;
  made.n_tensors = static_cast<int64_t>(tensors.size());
  made.n_files = n_shards;
  made.bytes = TotalBytes(tensors);
  Generator generator(options);
  generator.set_total(made.bytes);
  std::map<std::string, std::string> weight_map;
  for (int i = 0; i < n_shards; ++i) {
    const Tensors& shard = shards[static_cast<size_t>(i)];
    const std::string name =
        n_shards == 1 ? kSingleFileName : ShardFileName(i + 1, n_shards);
    BELAY_RETURN_IF_ERROR(
        WriteFile(Join(options.folder, name), shard, generator));
    for (const ExpectedTensor* tensor : shard) weight_map[tensor->name] = name;
  }
  if (n_shards > 1) {
    BELAY_RETURN_IF_ERROR(
        WriteFileAtomically(Join(options.folder, kIndexFileName),
                            IndexJson(weight_map, made.bytes)));
  }
  BELAY_RETURN_IF_ERROR(WriteFileAtomically(
      Join(options.folder, "config.json"), spec::ConfigToJson(options.config)));
  return made;
}

Status VerifyModel(const MakeModelOptions& options) {
  BELAY_ASSIGN_OR_RETURN(
      const auto checkpoint,
      Checkpoint::Open(
          options.folder,
          {.strict = true, .check_values = true, .pool = options.pool}));
  if (!(checkpoint->config() == options.config)) {
    return MakeError(kConfInconsistent,
                     {Join(options.folder, "config.json"),
                      "not the config that was written", "", ""});
  }
  Generator generator(options);
  generator.set_total(TotalBytes(checkpoint->tensors()));
  for (const ExpectedTensor& tensor : checkpoint->tensors()) {
    BELAY_ASSIGN_OR_RETURN(const ConstTensorView view,
                           checkpoint->Get(tensor.name));
    const auto* stored = static_cast<const std::byte*>(view.data());
    BELAY_RETURN_IF_ERROR(
        generator.Run(tensor, [&](int64_t first, std::span<std::byte> bytes) {
          const size_t offset =
              static_cast<size_t>(first) * DtypeBytes(tensor.dtype);
          if (std::memcmp(stored + offset, bytes.data(), bytes.size()) == 0) {
            return absl::OkStatus();
          }
          return MakeError(kCkptBadValue,
                           {options.folder + ": " + tensor.name,
                            "read back other bytes than were written", "", ""});
        }));
  }
  return absl::OkStatus();
}

}  // namespace belay::checkpoint
