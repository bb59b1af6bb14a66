// SPDX-License-Identifier: Apache-2.0
#include "toolkit/logs/input/inputs.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>

#include "base/error_ids.h"
#include "toolkit/logs/input/archive.h"

namespace belay::logs {
namespace {

namespace fs = std::filesystem;

Status Unreadable(const std::string& path, const std::string& what) {
  return MakeError(kSysUnreadable,
                   {.where = path, .what = what, .expected = "", .got = ""});
}

// Nothing for what cannot be opened.
std::optional<InputFile> Look(const std::string& path, uint64_t n_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::array<char, 512> first{};
  file.read(first.data(), first.size());
  const std::string_view bytes(first.data(),
                               static_cast<size_t>(file.gcount()));
  return InputFile{path, n_bytes, LooksLikeArchive(bytes)};
}

void AddFolder(const std::string& folder,
               std::map<std::string, InputFile>& files) {
  std::error_code error;
  fs::recursive_directory_iterator it(
      folder, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && it != end;
       it.increment(error)) {
    std::error_code bad;
    if (!it->is_regular_file(bad) || bad) continue;
    const uint64_t n_bytes = it->file_size(bad);
    if (bad) continue;
    const std::string path = it->path().string();
    if (auto file = Look(path, n_bytes)) files.emplace(path, *std::move(file));
  }
}

}  // namespace

StatusOr<std::vector<InputFile>> ListInputs(
    std::span<const std::string> paths) {
  std::map<std::string, InputFile> files;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (error || !fs::exists(status)) {
      return Unreadable(path, error ? error.message() : "no such file");
    }
    if (fs::is_directory(status)) {
      fs::directory_iterator probe(path, error);
      if (error) return Unreadable(path, error.message());
      AddFolder(path, files);
      continue;
    }
    if (!fs::is_regular_file(status)) {
      return Unreadable(path, "not a file, folder or archive");
    }
    auto file = Look(path, fs::file_size(path, error));
    if (!file) return Unreadable(path, "cannot be opened");
    files.emplace(path, *std::move(file));
  }
  std::vector<InputFile> list;
  list.reserve(files.size());
  for (auto& [path, file] : files) list.push_back(std::move(file));
  return list;
}

}  // namespace belay::logs
