// SPDX-License-Identifier: Apache-2.0
// What stands in front of a log line's message.
#ifndef BELAY_TOOLKIT_LOGS_PARSE_LINE_HEAD_H_
#define BELAY_TOOLKIT_LOGS_PARSE_LINE_HEAD_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "toolkit/logs/parse/time_stamp.h"

namespace belay::logs {

enum class Level : uint8_t {
  kNone,  // the line does not say
  kDebug,
  kInfo,
  kEvent,
  kWarning,
  kError,
  kFatal,
};

std::string_view NameOf(Level level);  // "", "DEBUG", "INFO", ...

// Views point into the line. -1 and empty: not said.
struct LineHead {
  Level level = Level::kNone;
  std::optional<TimeStamp> time;
  int pid = -1;
  int rank = -1;
  int device = -1;
  std::string_view module;  // of a plog: "RUNTIME", "HCCL", ...
  bool is_kernel = false;   // from dmesg or syslog's kernel
  size_t n_chars = 0;       // the message begins here
};

// Reads, in any sensible order and as often as they come: level words, times,
// process marks and ranks of
//   plog and device logs   [ERROR] RUNTIME(2723298,python):2026-06-02-04:45:20.
//   the error manager      EL0004: [PID: 553] 2025-09-17-04:55:13.065.712
//                          EZ9999[PID: 1] 2026-06-24-12:44:08.922.071 (EZ9999):
//                          [PID: 1035] 2026-09-16-11:00:43.191.752
//                          Title(EZ1008)
//   torch_npu              [ERROR] 2025-.. (PID:553, Device:0, RankID:-1)
//   vLLM                   (Worker_TP3 pid=12) ERROR 08-12 10:00:00
//   [core.py:12] SGLang                 [2025-08-12 10:00:00 TP3] MindIE
//   [2025-08-12 10:00:00,123] [1] [2] [llm] [ERROR] glog (xLLM) E20250812
//   10:00:00.123456 123 file.cpp:12] torchrun               [rank3]: Python
//   logging         2025-11-13 19:10:42.153 - name - ERROR - the kernel
//   [12345.678901], Aug  1 08:38:31 host kernel: [..]
// A code in front stays part of the message. Takes any bytes.
LineHead ParseHead(std::string_view line);

}  // namespace belay::logs

#endif  // BELAY_TOOLKIT_LOGS_PARSE_LINE_HEAD_H_
