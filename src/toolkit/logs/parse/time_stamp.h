// SPDX-License-Identifier: Apache-2.0
// Dates and times as logs write them.
#ifndef BELAY_TOOLKIT_LOGS_PARSE_TIME_STAMP_H_
#define BELAY_TOOLKIT_LOGS_PARSE_TIME_STAMP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace belay::logs {

// A point in time without a zone: logs of one machine share its clock, and what
// differs between machines is found by comparison (judge/clocks.h).
struct TimeStamp {
  int64_t us = 0;  // since 1970-01-01 00:00; in the year 1970 if !has_year
  bool has_year = true;
};

struct ParsedTime {
  TimeStamp time;
  size_t n_chars = 0;  // that it took
};

// Reads a time stamp at the start of `text`:
//   2026-06-02-04:45:20.827.387   plog, torch_npu, black box
//   2025-11-13 19:10:42.153018+08:00, 2025-10-11T15:09:34Z, 2025/10/11 15:09:34
//   20251012 10:00:00.123456      glog with a year (also -10:00:00)
//   08-12 10:00:00, 08-12 10:00:00.123     vLLM; no year
//   Aug  1 08:38:31               syslog; no year
//   0812 10:00:00.123456          glog; no year
// Nothing when there is none, or when a field is out of range. A zone behind
// the time is skipped, not applied.
std::optional<ParsedTime> ParseTime(std::string_view text);

// `us` moved from the year 1970 into `year` (2000 to 2199, else unchanged).
int64_t WithYear(int64_t us, int year);

// The year that `us` lies in.
int YearOf(int64_t us);

// "2026-06-02T04:45:20.827387"; without a year "06-02T04:45:20.827387".
std::string FormatTime(const TimeStamp& time);

}  // namespace belay::logs

#endif  // BELAY_TOOLKIT_LOGS_PARSE_TIME_STAMP_H_
