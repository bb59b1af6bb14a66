// SPDX-License-Identifier: Apache-2.0
// A diagnosis as people and programs read it. Text from logs is never written
// raw: control characters become \xNN, markup is escaped.
#ifndef BELAY_TOOLKIT_LOGS_REPORT_REPORT_H_
#define BELAY_TOOLKIT_LOGS_REPORT_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "diag/lang.h"
#include "diag/render.h"
#include "toolkit/logs/judge/diagnosis.h"

namespace belay::logs {

// {first_cause, findings, ranks, waiting_for, suspicious, versions, files,
// n_lines, n_bytes}; first_cause is null when nothing is known. Each finding:
// {id, severity, role, title, cause, fix, codes, operator, file, line, rank,
// ranks, device, pid, time, text, count, known_issues}; rank, device and pid
// are null and time is "" where the logs do not tell.
nlohmann::ordered_json DiagnosisToJson(const Diagnosis& diagnosis,
                                       diag::Lang lang);

// For a terminal, newline at the end.
std::string DiagnosisToText(const Diagnosis& diagnosis,
                            const diag::RenderOptions& options);

// One finding in two lines, as --follow prints it.
std::string FindingToText(const Finding& finding,
                          const diag::RenderOptions& options);

// One page with a timeline, which needs nothing else to be shown.
std::string DiagnosisToHtml(const Diagnosis& diagnosis, diag::Lang lang);

// "a.log:12, rank 3, 2026-06-02T04:45:20.827387"
std::string PlaceToText(const Place& place, diag::Lang lang);

}  // namespace belay::logs

#endif  // BELAY_TOOLKIT_LOGS_REPORT_REPORT_H_
