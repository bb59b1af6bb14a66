// SPDX-License-Identifier: Apache-2.0
// Files: mapped reads, whole reads, writes that appear whole or not at all.
#ifndef BELAY_BASE_FILE_H_
#define BELAY_BASE_FILE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace belay {

// A file mapped read-only. The mapping lives as long as the object. Whoever
// truncates the file meanwhile makes reads beyond its new end fail with SIGBUS.
class MappedFile {
 public:
  // Errors: SYS-001 (cannot open, not a regular file, cannot map).
  static StatusOr<std::unique_ptr<MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, n_bytes_}; }

  // Takes the file's pages out of this process's memory; bytes() stays valid,
  // and what is read again is mapped again.
  void ReleasePages() const;

 private:
  MappedFile(std::string path, const std::byte* data, size_t n_bytes)
      : path_(std::move(path)), data_(data), n_bytes_(n_bytes) {}

  std::string path_;
  const std::byte* data_;
  size_t n_bytes_;
};

// The whole file as text. SYS-001 when it cannot be read or is larger than
// `max_bytes`.
StatusOr<std::string> ReadFile(const std::string& path,
                               size_t max_bytes = size_t{1} << 30);

// Writes to a temporary file beside `path` and renames it, so that a reader
// sees the old file or the new one. A file that is replaced keeps its
// permissions; a symbolic link is replaced, not followed. SYS-002 on any
// failure (full disk, no such folder, `path` is a folder, device or pipe), with
// the system's words as `what`; then nothing is left behind.
Status WriteFileAtomically(const std::string& path, std::string_view text);

// A large file in pieces with the same promise: nothing is visible under the
// final name before Commit().
class AtomicFileWriter {
 public:
  static StatusOr<std::unique_ptr<AtomicFileWriter>> Create(
      const std::string& path);
  ~AtomicFileWriter();  // without Commit(): removes the temporary file
  AtomicFileWriter(const AtomicFileWriter&) = delete;
  AtomicFileWriter& operator=(const AtomicFileWriter&) = delete;

  // Both: SYS-002; after an error the temporary file is gone and every further
  // call fails. Commit() is fsync, then rename.
  Status Append(std::span<const std::byte> bytes);
  Status Commit();

 private:
  AtomicFileWriter(std::string path, std::string temp_path, int fd);
  Status Abandon(int error);  // closes, removes, returns SYS-002

  std::string path_;
  std::string temp_path_;
  int fd_;
};

}  // namespace belay

#endif  // BELAY_BASE_FILE_H_
