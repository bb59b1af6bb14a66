// SPDX-License-Identifier: Apache-2.0
// Models of several files. Source of the names and keys: the split files of
// llama.cpp (gguf-split): NAME-00001-of-00003.gguf, split.no, split.count,
// split.tensors.count; the first part holds the metadata.
#include <array>
#include <cstdio>
#include <filesystem>
#include <regex>
#include <utility>

#include "base/error_ids.h"
#include "checkpoint/gguf/file.h"

namespace belay::checkpoint::gguf {
namespace {

Status Disagree(const std::string& path, const char* key, int64_t expected,
                std::optional<int64_t> got) {
  return MakeError(kCkptBadIndex,
                   {path + ": " + key, "", std::to_string(expected),
                    got.has_value() ? std::to_string(*got) : "none"});
}

// The paths of all parts, `path` among them, from the count that is in its
// metadata; just `path` for a model of one file.
StatusOr<std::vector<std::string>> PartsOf(const GgufFile& file) {
  const int64_t n = file.metadata().Int("split.count").value_or(1);
  if (n <= 1) return std::vector<std::string>{file.path()};
  static const std::regex kPattern(R"((.*)-\d{5}-of-(\d{5})\.gguf)");
  std::smatch match;
  if (!std::regex_match(file.path(), match, kPattern) ||
      std::stoll(match[2]) != n) {
    return Disagree(file.path(), "split.count (name of the file)", n,
                    std::nullopt);
  }
  std::vector<std::string> paths;
  for (int64_t i = 1; i <= n; ++i) {
    std::array<char, 48> name{};
    std::snprintf(name.data(), name.size(), "-%05d-of-%05d.gguf",
                  static_cast<int>(i), static_cast<int>(n));
    paths.push_back(match[1].str() + name.data());
  }
  return paths;
}

}  // namespace

StatusOr<GgufSet> OpenSet(const std::string& path) {
  GgufSet set;
  BELAY_ASSIGN_OR_RETURN(auto given, GgufFile::Open(path));
  BELAY_ASSIGN_OR_RETURN(const std::vector<std::string> paths, PartsOf(*given));
  const auto n = static_cast<int64_t>(paths.size());
  for (int64_t i = 0; i < n; ++i) {
    const std::string& part = paths[static_cast<size_t>(i)];
    if (n == 1) {
      set.files.push_back(std::move(given));
      break;
    }
    std::error_code error;
    if (!std::filesystem::exists(part, error)) {
      return MakeError(kCkptMissingShard,
                       {part, "", std::to_string(n) + " parts", ""});
    }
    BELAY_ASSIGN_OR_RETURN(auto file, GgufFile::Open(part));
    const auto number = file->metadata().Int("split.no");
    if (number != i) return Disagree(part, "split.no", i, number);
    const auto count = file->metadata().Int("split.count");
    if (count != n) return Disagree(part, "split.count", n, count);
    set.files.push_back(std::move(file));
  }
  for (const auto& file : set.files) {
    for (const TensorInfo& tensor : file->tensors()) {
      if (set.tensors.emplace(tensor.name, &tensor).second) continue;
      return MakeError(
          kCkptDuplicateTensor,
          {file->path() + ": " + std::string(tensor.name), "", "", ""});
    }
  }
  const auto total = set.metadata().Int("split.tensors.count");
  const auto found = static_cast<int64_t>(set.tensors.size());
  if (n > 1 && total.has_value() && *total != found) {
    return Disagree(path, "split.tensors.count", *total, found);
  }
  return set;
}

}  // namespace belay::checkpoint::gguf
