// SPDX-License-Identifier: Apache-2.0
// The report at the end of a process (CANNSIM_REPORT).
#ifndef BELAY_CANNSIM_RUNTIME_COUNT_REPORT_H_
#define BELAY_CANNSIM_RUNTIME_COUNT_REPORT_H_

#include <string>

namespace cannsim {

// As a table, or as JSON.
std::string ReportText();
std::string ReportJson();

// Writes it to `path`: JSON if the name ends with .json; "-" is stderr, and
// "%p" in the name becomes the process id. False when it cannot be written.
bool WriteReport(const std::string& path);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_COUNT_REPORT_H_
