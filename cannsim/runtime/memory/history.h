// SPDX-License-Identifier: Apache-2.0
// What the program did with one buffer: the first call and the last few.
#ifndef BELAY_CANNSIM_RUNTIME_MEMORY_HISTORY_H_
#define BELAY_CANNSIM_RUNTIME_MEMORY_HISTORY_H_

#include <array>
#include <cstddef>
#include <string>

#include "cannsim/runtime/error.h"

namespace cannsim {

class History {
 public:
  // Notes the thread's current call as a use ("written", "read", "freed").
  void Note(const char* use);

  // One line a call, oldest first.
  std::string Text() const;

 private:
  struct Use {
    Call call;
    const char* what = "";
  };
  static constexpr size_t kKept = 6;

  Use first_;
  std::array<Use, kKept> last_;
  size_t n_ = 0;  // uses in all
};

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_MEMORY_HISTORY_H_
