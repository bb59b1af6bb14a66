// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/fingerprint.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error_ids.h"
#include "base/file.h"

namespace belay::checkpoint {
namespace {

constexpr size_t kSample = 4096;

class Hash {
 public:
  void Add(uint64_t value) {
    value_ = (value_ ^ value) * 0x9e3779b97f4a7c15u;
    value_ ^= value_ >> 29;
  }
  void Add(std::span<const std::byte> bytes) {
    Add(bytes.size());
    for (const std::byte b : bytes) Add(static_cast<uint64_t>(b));
  }
  uint64_t value() const { return std::max<uint64_t>(value_, 1); }

 private:
  uint64_t value_ = 1;
};

Status AddFile(const std::filesystem::path& path, Hash& hash) {
  BELAY_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path.string()));
  const std::string name = path.filename().string();
  hash.Add(std::as_bytes(std::span(name.data(), name.size())));
  const std::span<const std::byte> bytes = file->bytes();
  hash.Add(bytes.size());
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  hash.Add(static_cast<uint64_t>(time.time_since_epoch().count()));
  const size_t n = std::min(bytes.size(), kSample);
  hash.Add(bytes.first(n));
  hash.Add(bytes.last(n));
  return absl::OkStatus();
}

}  // namespace

StatusOr<uint64_t> Fingerprint(const std::string& path) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      std::error_code ignored;
      if (entry.is_regular_file(ignored)) files.push_back(entry.path());
    }
    if (error) {
      return MakeError(
          kSysUnreadable,
          {.where = path, .what = error.message(), .expected = "", .got = ""});
    }
    std::sort(files.begin(), files.end());
  } else {
    files.emplace_back(path);
  }
  Hash hash;
  for (const std::filesystem::path& file : files) {
    BELAY_RETURN_IF_ERROR(AddFile(file, hash));
  }
  return hash.value();
}

}  // namespace belay::checkpoint
