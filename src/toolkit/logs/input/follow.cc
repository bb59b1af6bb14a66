// SPDX-License-Identifier: Apache-2.0
#include "toolkit/logs/input/follow.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/scoped_fd.h"
#include "toolkit/logs/input/inputs.h"

namespace belay::logs {

Status Follower::Poll() {
  BELAY_ASSIGN_OR_RETURN(const std::vector<InputFile> files,
                         ListInputs(paths_));
  for (const InputFile& file : files) {
    if (file.is_archive) continue;
    Tail& tail = tails_[file.path];
    if (tail.scanner == nullptr || file.n_bytes < tail.at) {
      tail.scanner = std::make_unique<Scanner>(knowledge_, file.path);
      tail.at = 0;
    }
    if (file.n_bytes > tail.at) ReadOn(file.path, tail);
  }
  return absl::OkStatus();
}

void Follower::ReadOn(const std::string& path, Tail& tail) {
  const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return;  // gone between two looks
  std::vector<char> buffer(size_t{256} << 10);
  while (true) {
    const ssize_t n = pread(fd.get(), buffer.data(), buffer.size(),
                            static_cast<off_t>(tail.at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    tail.scanner->Feed({buffer.data(), static_cast<size_t>(n)});
    tail.at += static_cast<uint64_t>(n);
  }
}

Diagnosis Follower::Now() const {
  std::vector<FileFacts> files;
  for (const auto& [path, tail] : tails_) {
    if (tail.scanner->facts().n_lines > 0) {
      files.push_back(tail.scanner->facts());
    }
  }
  return Diagnose(files, knowledge_.catalogue);
}

std::vector<Finding> Follower::News() {
  std::vector<Finding> news;
  for (Finding& finding : Now().findings) {
    if (told_.insert(finding.entry).second) news.push_back(std::move(finding));
  }
  return news;
}

}  // namespace belay::logs
