// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TOOLKIT_DOCTOR_REPORT_REPORT_H_
#define BELAY_TOOLKIT_DOCTOR_REPORT_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "diag/catalogue.h"
#include "diag/render.h"
#include "toolkit/doctor/doctor.h"

namespace belay::doctor {

// {npu, chip, driver, firmware, cann, container, packages, findings, passed};
// each finding: {id, verdict, title, where, evidence, why, fix, command}.
nlohmann::ordered_json VerdictToJson(const Verdict& verdict,
                                     const diag::Catalogue& catalogue,
                                     diag::Lang lang);

// For a terminal, newline at the end.
std::string VerdictToText(const Verdict& verdict,
                          const diag::Catalogue& catalogue,
                          const diag::RenderOptions& options);

// A shell script with the command of each finding that has one, all of them
// commented out: a person decides which lines run.
std::string FixScript(const Verdict& verdict, const diag::Catalogue& catalogue,
                      diag::Lang lang);

}  // namespace belay::doctor

#endif  // BELAY_TOOLKIT_DOCTOR_REPORT_REPORT_H_
