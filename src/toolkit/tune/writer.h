// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TOOLKIT_TUNE_WRITER_H_
#define BELAY_TOOLKIT_TUNE_WRITER_H_

#include <memory>
#include <string>

#include "base/error.h"

namespace belay::tune {

// Writes to files of the kernel. Apart from doctor's Machine, which can only
// look.
class Writer {
 public:
  virtual ~Writer() = default;
  // `text` and a newline in one write, to a file that is there. SYS-002 with
  // the system's words: no right, or the kernel refuses the value.
  virtual Status Write(const std::string& path, const std::string& text) = 0;
};

// `root` stands before every path, as in doctor::NewLiveMachine.
std::unique_ptr<Writer> NewLiveWriter(const std::string& root);

}  // namespace belay::tune

#endif  // BELAY_TOOLKIT_TUNE_WRITER_H_
