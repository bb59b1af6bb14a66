// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/shards.h"

#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error_ids.h"
#include "base/file.h"
#include "spec/json.h"

namespace belay::checkpoint {
namespace {

using Json = nlohmann::json;

// Pro has 145,116 tensors, about 11 MB of index.
constexpr size_t kMaxIndexBytes = size_t{256} << 20;

bool FileExists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::string Join(const std::string& folder, std::string_view name) {
  return (std::filesystem::path(folder) / name).string();
}

Status BadIndex(std::string where, std::string what) {
  return MakeError(kCkptBadIndex, {std::move(where), std::move(what), "", ""});
}

// A file beside the index: an index must not lead out of its folder.
bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

struct Index {
  std::map<std::string, std::string> weight_map;  // tensor -> file
  std::optional<uint64_t> total_size;
};

StatusOr<Index> ReadIndex(const std::string& path) {
  BELAY_ASSIGN_OR_RETURN(const std::string text,
                         ReadFile(path, kMaxIndexBytes));
  const std::optional<Json> root = spec::ParseJson(text);
  if (!root.has_value() || !root->is_object()) {
    return BadIndex(path, "not a JSON object");
  }
  const auto map = root->find("weight_map");
  if (map == root->end() || !map->is_object()) {
    return BadIndex(path, "no weight_map");
  }
  Index index;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !IsPlainFileName(file.get<std::string>())) {
      return BadIndex(path + ": " + tensor, "not the name of a file beside it");
    }
    index.weight_map.emplace(tensor, file.get<std::string>());
  }
  const auto metadata = root->find("metadata");
  if (metadata != root->end() && metadata->is_object()) {
    const auto total = metadata->find("total_size");
    if (total != metadata->end() && total->is_number_unsigned()) {
      index.total_size = total->get<uint64_t>();
    }
  }
  return index;
}

// Opens `path` and adds its tensors.
Status AddFile(const std::string& path, ShardSet& set) {
  BELAY_ASSIGN_OR_RETURN(auto file, SafetensorsFile::Open(path));
  for (const StoredTensor& tensor : file->tensors()) {
    const auto [it, is_new] = set.tensors.emplace(tensor.name, &tensor);
    if (!is_new) {
      return MakeError(
          kCkptDuplicateTensor,
          {path + ": " + tensor.name, "also in an earlier shard", "", ""});
    }
  }
  set.files.push_back(std::move(file));
  return absl::OkStatus();
}

// Every tensor of the index is in its file, and no file has another.
Status CheckIndex(const Index& index, const ShardSet& set,
                  const std::string& index_path) {
  std::unordered_map<std::string_view, std::string> file_of;
  for (const auto& file : set.files) {
    const std::string name =
        std::filesystem::path(file->path()).filename().string();
    for (const StoredTensor& tensor : file->tensors()) {
      file_of.emplace(tensor.name, name);
    }
  }
  for (const auto& [tensor, file] : index.weight_map) {
    const auto it = file_of.find(tensor);
    if (it != file_of.end() && it->second == file) continue;
    return MakeError(
        kCkptBadIndex,
        {index_path + ": " + tensor, "the tensor is not where the index says",
         file, it == file_of.end() ? "in no file" : it->second});
  }
  for (const auto& [tensor, file] : file_of) {
    if (index.weight_map.contains(std::string(tensor))) continue;
    return BadIndex(file + ": " + std::string(tensor),
                    "the tensor is not in the index");
  }
  return absl::OkStatus();
}

StatusOr<ShardSet> OpenIndexed(const std::string& folder) {
  const std::string index_path = Join(folder, kIndexFileName);
  BELAY_ASSIGN_OR_RETURN(const Index index, ReadIndex(index_path));
  std::map<std::string, bool> names;
  for (const auto& [tensor, file] : index.weight_map) names[file] = true;
  ShardSet set;
  for (const auto& [name, unused] : names) {
    const std::string path = Join(folder, name);
    if (!FileExists(path)) {
      return MakeError(kCkptMissingShard, {path, "", "", ""});
    }
    BELAY_RETURN_IF_ERROR(AddFile(path, set));
  }
  BELAY_RETURN_IF_ERROR(CheckIndex(index, set, index_path));
  if (index.total_size.has_value() && *index.total_size != set.data_bytes()) {
    set.warnings.push_back(
        index_path + ": total_size " + std::to_string(*index.total_size) +
        ", but " + std::to_string(set.data_bytes()) + " bytes of tensors");
  }
  return set;
}

}  // namespace

std::string ShardFileName(int number, int n_shards) {
  char text[64];
  std::snprintf(text, sizeof(text), "model-%05d-of-%05d.safetensors", number,
                n_shards);
  return text;
}

std::string IndexJson(const std::map<std::string, std::string>& weight_map,
                      uint64_t total_size) {
  const Json root = {{"metadata", {{"total_size", total_size}}},
                     {"weight_map", weight_map}};
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

uint64_t ShardSet::data_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += tensor->view.bytes();
  return bytes;
}

StatusOr<ShardSet> OpenShards(const std::string& folder) {
  if (FileExists(Join(folder, kIndexFileName))) return OpenIndexed(folder);
  const std::string single = Join(folder, kSingleFileName);
  if (!FileExists(single)) {
    return MakeError(
        kCkptNotFound,
        {folder, "", std::string(kSingleFileName) + " or " + kIndexFileName,
         "neither"});
  }
  ShardSet set;
  BELAY_RETURN_IF_ERROR(AddFile(single, set));
  return set;
}

}  // namespace belay::checkpoint
