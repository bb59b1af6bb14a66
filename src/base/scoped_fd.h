// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_BASE_SCOPED_FD_H_
#define BELAY_BASE_SCOPED_FD_H_

#include <unistd.h>

#include <utility>

namespace belay {

// Owns a file descriptor for the length of a scope; a negative one is none.
class ScopedFd {
 public:
  explicit ScopedFd(int fd) : fd_(fd) {}
  ~ScopedFd() {
    if (fd_ >= 0) close(fd_);
  }
  ScopedFd(const ScopedFd&) = delete;
  ScopedFd& operator=(const ScopedFd&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace belay

#endif  // BELAY_BASE_SCOPED_FD_H_
