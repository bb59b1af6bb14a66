// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/error_ids.h"
#include "base/scoped_fd.h"

namespace belay {
namespace {

// strerror is not thread safe; this is the same text.
std::string ErrnoText(int error) {
  return std::generic_category().message(error);
}

Status Unreadable(const std::string& path, std::string what) {
  return MakeError(
      kSysUnreadable,
      {.where = path, .what = std::move(what), .expected = "", .got = ""});
}

Status WriteFailed(const std::string& path, std::string what) {
  return MakeError(
      kSysWriteFailed,
      {.where = path, .what = std::move(what), .expected = "", .got = ""});
}

int OpenForReading(const std::string& path) {
  int fd;
  do {
    fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// The permissions that the final file gets: those of the file it replaces, or
// 0 when there is none. A rename onto a device or a pipe would destroy it
// (`--out /dev/null` as root), so only regular files are replaced.
StatusOr<mode_t> ModeOfTarget(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return mode_t{0};
    return WriteFailed(path, ErrnoText(errno));
  }
  if (S_ISDIR(info.st_mode)) return WriteFailed(path, ErrnoText(EISDIR));
  if (!S_ISREG(info.st_mode)) return WriteFailed(path, "not a regular file");
  return static_cast<mode_t>(info.st_mode & 07777);
}

// Makes a rename durable. Best effort: some file systems refuse to sync a
// folder, and the promise that readers see (old file or new one) holds anyway.
void SyncFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
  if (folder.empty()) folder = "/";
  const ScopedFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() >= 0) fsync(fd.get());
}

}  // namespace

StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(
    const std::string& path) {
  const ScopedFd fd(OpenForReading(path));
  if (fd.get() < 0) return Unreadable(path, ErrnoText(errno));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return Unreadable(path, ErrnoText(errno));
  if (S_ISDIR(info.st_mode)) return Unreadable(path, ErrnoText(EISDIR));
  if (!S_ISREG(info.st_mode)) return Unreadable(path, "not a regular file");
  const size_t n_bytes = static_cast<size_t>(info.st_size);
  void* data = nullptr;  // mmap refuses a length of 0
  if (n_bytes > 0) {
    data = mmap(nullptr, n_bytes, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (data == MAP_FAILED) return Unreadable(path, ErrnoText(errno));
  }
  return std::unique_ptr<MappedFile>(
      new MappedFile(path, static_cast<const std::byte*>(data), n_bytes));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), n_bytes_);
}

void MappedFile::ReleasePages() const {
  if (data_ == nullptr) return;
  // A read-only private mapping has no pages of its own to lose.
  (void)madvise(const_cast<std::byte*>(data_), n_bytes_, MADV_DONTNEED);
}

StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  const ScopedFd fd(OpenForReading(path));
  if (fd.get() < 0) return Unreadable(path, ErrnoText(errno));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return Unreadable(path, ErrnoText(errno));
  // The size is only a hint: files of /proc say 0, pipes too.
  std::string text;
  text.reserve(std::min(static_cast<size_t>(info.st_size) + 1, max_bytes));
  char piece[1 << 16];
  while (true) {
    const ssize_t n = read(fd.get(), piece, sizeof(piece));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Unreadable(path, ErrnoText(errno));
    if (n == 0) return text;
    if (static_cast<size_t>(n) > max_bytes - text.size()) {
      return MakeError(kSysUnreadable, {.where = path,
                                        .what = "the file is too large",
                                        .expected = std::to_string(max_bytes) +
                                                    " bytes at most",
                                        .got = ""});
    }
    text.append(piece, static_cast<size_t>(n));
  }
}

Status WriteFileAtomically(const std::string& path, std::string_view text) {
  BELAY_ASSIGN_OR_RETURN(const auto writer, AtomicFileWriter::Create(path));
  BELAY_RETURN_IF_ERROR(
      writer->Append(std::as_bytes(std::span(text.data(), text.size()))));
  return writer->Commit();
}

AtomicFileWriter::AtomicFileWriter(std::string path, std::string temp_path,
                                   int fd)
    : path_(std::move(path)), temp_path_(std::move(temp_path)), fd_(fd) {}

StatusOr<std::unique_ptr<AtomicFileWriter>> AtomicFileWriter::Create(
    const std::string& path) {
  BELAY_ASSIGN_OR_RETURN(const mode_t mode, ModeOfTarget(path));
  // A name of our own beside the target, where a rename is atomic. Two writers
  // of one process, or a file left by a killed one, take the next number.
  const std::string stem = path + ".tmp-" + std::to_string(getpid()) + "-";
  for (int attempt = 0;; ++attempt) {
    std::string temp_path = stem + std::to_string(attempt);
    ScopedFd fd(
        open(temp_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd.get() < 0 && (errno == EINTR || (errno == EEXIST && attempt < 1000)))
      continue;
    if (fd.get() < 0) return WriteFailed(path, ErrnoText(errno));
    std::unique_ptr<AtomicFileWriter> writer(
        new AtomicFileWriter(path, std::move(temp_path), fd.release()));
    if (mode != 0 && fchmod(writer->fd_, mode) != 0) {
      return WriteFailed(path, ErrnoText(errno));
    }
    return writer;
  }
}

AtomicFileWriter::~AtomicFileWriter() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temp_path_.c_str());
}

Status AtomicFileWriter::Append(std::span<const std::byte> bytes) {
  if (fd_ < 0) return WriteFailed(path_, "the file is closed");
  while (!bytes.empty()) {
    const ssize_t n = write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Abandon(errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

Status AtomicFileWriter::Commit() {
  if (fd_ < 0) return WriteFailed(path_, "the file is closed");
  if (fsync(fd_) != 0) return Abandon(errno);
  // After close the descriptor is gone even when it reports an error.
  if (close(std::exchange(fd_, -1)) != 0 ||
      rename(temp_path_.c_str(), path_.c_str()) != 0) {
    return Abandon(errno);
  }
  SyncFolderOf(path_);
  return absl::OkStatus();
}

Status AtomicFileWriter::Abandon(int error) {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
  unlink(temp_path_.c_str());
  return WriteFailed(path_, ErrnoText(error));
}

}  // namespace belay
