// SPDX-License-Identifier: Apache-2.0
#include "engine/prefix/spill.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error_ids.h"
#include "base/file.h"
#include "base/scoped_fd.h"

namespace belay::engine {
namespace {

constexpr std::array<char, 8> kMagic = {'B', 'E', 'L', 'A', 'Y', 'P', 'F', 'X'};
constexpr uint32_t kVersion = 1;
constexpr const char* kSuffix = ".prefix";

struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  int32_t adapter = 0;
  uint64_t fingerprint = 0;
  uint64_t salt = 0;
  uint64_t n_ids = 0;
  uint64_t page_bytes = 0;
  uint64_t point_bytes = 0;  // 0 = no resume point
  uint64_t checksum = 0;     // of the header with 0 here, and all that follows
};
static_assert(sizeof(Header) == 64 &&
                  std::endian::native == std::endian::little,
              "the file is the header's memory");

// Every step is a bijection of the state for a given word, and of the word for
// a given state: a change within one word always changes the sum.
class Checksum {
 public:
  void Add(std::span<const std::byte> bytes) {
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
      uint64_t word;
      std::memcpy(&word, bytes.data(), 8);
      AddWord(word);
    }
    uint64_t last = 0;
    // Nothing at all may come as a null pointer, which memcpy must not see.
    if (!bytes.empty()) std::memcpy(&last, bytes.data(), bytes.size());
    AddWord(last);
    AddWord(bytes.size());
  }
  uint64_t value() const { return state_ ^ (state_ >> 32); }

 private:
  void AddWord(uint64_t word) {
    state_ = std::rotl(state_ ^ word, 27) * 0x9e3779b97f4a7c15u + 0x165667b1u;
  }
  uint64_t state_ = 0x27d4eb2f165667c5u;
};

std::span<const std::byte> BytesOf(const Header& header) {
  return std::as_bytes(std::span(&header, 1));
}

uint64_t SumOf(Header header, std::span<const int32_t> ids,
               std::span<const std::byte> page,
               std::span<const std::byte> point) {
  header.checksum = 0;
  Checksum sum;
  sum.Add(BytesOf(header));
  sum.Add(std::as_bytes(ids));
  sum.Add(page);
  sum.Add(point);
  return sum.value();
}

bool ReadAll(int fd, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t n = read(fd, to.data(), to.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to = to.subspan(static_cast<size_t>(n));
  }
  return true;
}

// Reads the ids and compares them as they come.
bool ReadSameIds(int fd, std::span<const int32_t> ids) {
  std::array<int32_t, kPageTokens> piece;
  for (; !ids.empty(); ids = ids.subspan(kPageTokens)) {
    if (!ReadAll(fd, std::as_writable_bytes(std::span(piece)))) return false;
    if (!std::ranges::equal(piece, ids.first(kPageTokens))) return false;
  }
  return true;
}

Status Unwritable(const std::string& folder, std::string what) {
  return MakeError(
      kSysWriteFailed,
      {.where = folder, .what = std::move(what), .expected = "", .got = ""});
}

bool IsOurs(const std::filesystem::directory_entry& entry, bool* temporary) {
  const std::string name = entry.path().filename().string();
  const size_t at = name.find(kSuffix);
  if (at == std::string::npos) return false;
  *temporary = name.size() > at + std::strlen(kSuffix);
  return true;
}

}  // namespace

StatusOr<std::unique_ptr<PrefixSpill>> PrefixSpill::Open(
    const SpillOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) return Unwritable(options.folder, error.message());
  // Prefixes are what users have written.
  std::filesystem::permissions(options.folder,
                               std::filesystem::perms::owner_all, error);
  if (error || access(options.folder.c_str(), W_OK | X_OK) != 0) {
    return Unwritable(options.folder, "not a folder of this user");
  }
  std::vector<std::filesystem::path> left;
  for (const auto& entry :
       std::filesystem::directory_iterator(options.folder, error)) {
    bool temporary = false;
    if (IsOurs(entry, &temporary) && temporary) left.push_back(entry.path());
  }
  for (const auto& path : left) std::filesystem::remove(path, error);
  return std::unique_ptr<PrefixSpill>(new PrefixSpill(options));
}

PrefixSpill::PrefixSpill(const SpillOptions& options)
    : options_(options),
      page_(options.page_bytes),
      point_(options.point_bytes) {
  Trim();
  writer_ = std::thread([this] { Write(); });
}

PrefixSpill::~PrefixSpill() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  writer_.join();
}

std::string PrefixSpill::PathOf(const PrefixKey& key,
                                std::span<const int32_t> ids) const {
  std::array<uint64_t, 2> hash;
  for (size_t i = 0; i < hash.size(); ++i) {
    const std::array<uint64_t, 4> about = {i, options_.fingerprint, key.salt,
                                           static_cast<uint32_t>(key.adapter)};
    Checksum sum;
    sum.Add(std::as_bytes(std::span(about)));
    sum.Add(std::as_bytes(ids));
    hash[i] = sum.value();
  }
  std::string name;
  for (const uint64_t part : hash) {
    for (int shift = 60; shift >= 0; shift -= 4) {
      name.push_back("0123456789abcdef"[(part >> shift) & 15]);
    }
  }
  return options_.folder + "/" + name + kSuffix;
}

// --- Writing ---

bool PrefixSpill::busy() {
  const std::lock_guard lock(mutex_);
  return has_job_;
}

void PrefixSpill::WaitUntilIdle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !has_job_; });
}

int64_t PrefixSpill::n_writes() {
  const std::lock_guard lock(mutex_);
  return n_writes_;
}

void PrefixSpill::Save(const PrefixKey& key, std::span<const int32_t> ids,
                       bool has_point) {
  {
    const std::lock_guard lock(mutex_);
    BELAY_CHECK(!has_job_);
    key_ = key;
    ids_.assign(ids.begin(), ids.end());
    has_point_ = has_point;
    has_job_ = true;
  }
  changed_.notify_all();
}

void PrefixSpill::Write() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return has_job_ || stop_; });
    if (!has_job_) return;
    lock.unlock();
    const bool written = WriteOne();
    Trim();
    lock.lock();
    if (written) ++n_writes_;
    has_job_ = false;
    changed_.notify_all();
  }
}

bool PrefixSpill::WriteOne() const {
  const std::span<const std::byte> point =
      has_point_ ? std::span(point_) : std::span<const std::byte>();
  Header header;
  header.adapter = key_.adapter;
  header.fingerprint = options_.fingerprint;
  header.salt = key_.salt;
  header.n_ids = ids_.size();
  header.page_bytes = page_.size();
  header.point_bytes = point.size();
  header.checksum = SumOf(header, ids_, page_, point);
  const auto file = AtomicFileWriter::Create(PathOf(key_, ids_));
  return file.ok() && (*file)->Append(BytesOf(header)).ok() &&
         (*file)->Append(std::as_bytes(std::span(ids_))).ok() &&
         (*file)->Append(page_).ok() && (*file)->Append(point).ok() &&
         (*file)->Commit().ok();
}

// Removes the files that were used longest ago until a tenth of the budget is
// free, once it is exceeded.
void PrefixSpill::Trim() const {
  struct File {
    std::filesystem::file_time_type time;
    uintmax_t bytes;
    std::filesystem::path path;
  };
  std::vector<File> files;
  uintmax_t total = 0;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(options_.folder, error)) {
    bool temporary = false;
    if (!IsOurs(entry, &temporary) || temporary) continue;
    const uintmax_t bytes = entry.file_size(error);
    if (error) continue;
    total += bytes;
    files.push_back({entry.last_write_time(error), bytes, entry.path()});
  }
  if (total <= options_.max_bytes) return;
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.time < b.time; });
  for (const File& file : files) {
    if (total <= options_.max_bytes - options_.max_bytes / 10) return;
    if (std::filesystem::remove(file.path, error)) total -= file.bytes;
  }
}

// --- Reading ---

PrefixSpill::Found PrefixSpill::Load(const PrefixKey& key,
                                     std::span<const int32_t> ids,
                                     std::span<std::byte> page,
                                     std::span<std::byte> point) {
  const std::string path = PathOf(key, ids);
  const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd.get() < 0) return Found::kNothing;
  const auto damaged = [&] {
    ++n_damaged_;
    unlink(path.c_str());
    return Found::kNothing;
  };
  Header header;
  struct stat info;
  if (fstat(fd.get(), &info) != 0 ||
      !ReadAll(fd.get(), std::as_writable_bytes(std::span(&header, 1)))) {
    return damaged();
  }
  const bool has_point = header.point_bytes != 0;
  if (header.magic != kMagic || header.version != kVersion ||
      header.n_ids != ids.size() || header.page_bytes != page.size() ||
      (has_point && header.point_bytes != point.size()) ||
      static_cast<uint64_t>(info.st_size) != sizeof(Header) + ids.size_bytes() +
                                                 header.page_bytes +
                                                 header.point_bytes) {
    return damaged();
  }
  // Another prefix of the same name, or damage: either way it is not this one.
  if (header.fingerprint != options_.fingerprint || header.salt != key.salt ||
      header.adapter != key.adapter || !ReadSameIds(fd.get(), ids)) {
    return damaged();
  }
  if (!has_point) point = {};
  if (!ReadAll(fd.get(), page) || !ReadAll(fd.get(), point) ||
      SumOf(header, ids, page, point) != header.checksum) {
    return damaged();
  }
  futimens(fd.get(), nullptr);  // used now; Trim() goes by it
  return has_point ? Found::kPageAndPoint : Found::kPage;
}

}  // namespace belay::engine
