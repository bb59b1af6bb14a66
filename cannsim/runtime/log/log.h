// SPDX-License-Identifier: Apache-2.0
// Log files in the form and the folders of CANN:
//
//   ROOT/{debug,run}/plog/plog-<pid>_<yyyymmddhhmmssmmm>.log
//   ROOT/debug/device-<id>/device-<pid>_<yyyymmddhhmmssmmm>.log
//   [ERROR] RUNTIME(pid,program):yyyy-mm-dd-hh:mm:ss.mmm.uuu [file:line]tid
//   F:..
//
// A file appears with its first line. What cannot be written is dropped: a log
// must not end the program that it is about.
#ifndef BELAY_CANNSIM_RUNTIME_LOG_LOG_H_
#define BELAY_CANNSIM_RUNTIME_LOG_LOG_H_

#include <string>

namespace cannsim {

enum class LogLevel { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

// Where in our sources a line comes from.
struct LogPlace {
  const char* file = __builtin_FILE();
  int line = __builtin_LINE();
};

// Whether lines of this level of the module are written (debug/plog).
bool Logs(LogLevel level, const char* module);

// Into debug/plog, where the level allows it. Line breaks in `text` end it:
// the rest is for people, not for logs.
void Log(LogLevel level, const char* module, const char* function,
         const std::string& text, LogPlace place = LogPlace());

// Into run/plog, whatever the level: starts and ends.
void LogRun(const char* module, const char* function, const std::string& text,
            LogPlace place = LogPlace());

// Into the log of a device, whose lines the host relays.
void LogDevice(int device, const char* module, const char* function,
               const std::string& text, LogPlace place = LogPlace());

// yyyy-mm-dd-hh:mm:ss.mmm.uuu, now.
std::string LogTime();

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_LOG_LOG_H_
