// SPDX-License-Identifier: Apache-2.0
#include "toolkit/tune/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error_ids.h"
#include "base/scoped_fd.h"

namespace belay::tune {
namespace {

class LiveWriter : public Writer {
 public:
  explicit LiveWriter(std::string root) : root_(std::move(root)) {}

  Status Write(const std::string& below, const std::string& text) override {
    const std::string path = root_ + below;
    // No O_CREAT: a setting that this kernel does not have is not made up. A
    // file of the kernel has no length to truncate, one of a test has.
    const ScopedFd fd(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (fd.get() < 0) return Failed(path);
    const std::string line = text + "\n";
    ssize_t n = 0;
    do {
      n = write(fd.get(), line.data(), line.size());
    } while (n < 0 && errno == EINTR);
    if (n != static_cast<ssize_t>(line.size())) return Failed(path);
    return absl::OkStatus();
  }

 private:
  static Status Failed(const std::string& path) {
    return MakeError(kSysWriteFailed, {.where = path,
                                       .what = std::strerror(errno),
                                       .expected = "",
                                       .got = ""});
  }

  std::string root_;
};

}  // namespace

std::unique_ptr<Writer> NewLiveWriter(const std::string& root) {
  return std::make_unique<LiveWriter>(root);
}

}  // namespace belay::tune
