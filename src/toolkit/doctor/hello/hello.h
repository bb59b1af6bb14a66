// SPDX-License-Identifier: Apache-2.0
// One small operator on the device, through the whole road that a model takes:
// libraries, start-up, memory, copies, a launch, a wait. Nothing is compiled
// and no model is needed.
#ifndef BELAY_TOOLKIT_DOCTOR_HELLO_HELLO_H_
#define BELAY_TOOLKIT_DOCTOR_HELLO_HELLO_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "cann_api/api.h"
#include "cann_api/runtime.h"
#include "diag/catalogue.h"
#include "diag/render.h"

namespace belay::doctor {

struct HelloOptions {
  cann_api::LoadOptions libraries = {};
  cann_api::StartOptions start = {};
  int32_t timeout_ms = 30000;  // of the operator
};

struct HelloReport {
  std::vector<cann_api::TimedStep> steps;  // in order, the failed one last
  std::vector<std::string> libraries;      // that were loaded
  std::vector<cann_api::MissingSymbol> missing;
  std::string soc;  // "Ascend910B3"; "" = unknown
  // Why it stopped; OK when the operator's numbers were right and everything
  // could be given back.
  Status status;
};

HelloReport Hello(const HelloOptions& options);

// For a terminal, newline at the end; one line when there is no CANN.
std::string HelloToText(const HelloReport& report,
                        const diag::Catalogue& catalogue,
                        const diag::RenderOptions& options);
// {ok, soc, libraries, missing, steps: [{name, ms, ok}], error}.
nlohmann::ordered_json HelloToJson(const HelloReport& report,
                                   const diag::Catalogue& catalogue,
                                   diag::Lang lang);

}  // namespace belay::doctor

#endif  // BELAY_TOOLKIT_DOCTOR_HELLO_HELLO_H_
