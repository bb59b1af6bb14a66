// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TOOLKIT_LOADTEST_REPORT_H_
#define BELAY_TOOLKIT_LOADTEST_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "diag/catalogue.h"
#include "diag/lang.h"
#include "toolkit/loadtest/plan.h"

namespace belay::loadtest {

// Every figure, without the texts of the answers.
nlohmann::ordered_json ReportToJson(const LoadReport& report,
                                    const diag::Catalogue& catalogue,
                                    diag::Lang lang);

// One file with tables and curves, which needs nothing else to be shown.
std::string ReportToHtml(const LoadReport& report,
                         const diag::Catalogue& catalogue, diag::Lang lang);

}  // namespace belay::loadtest

#endif  // BELAY_TOOLKIT_LOADTEST_REPORT_H_
