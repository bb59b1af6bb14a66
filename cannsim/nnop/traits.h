// SPDX-License-Identifier: Apache-2.0
// What is known of an operator from its name and its arguments alone: what it
// costs in simulated time, and which quirks it meets.
#ifndef BELAY_CANNSIM_NNOP_TRAITS_H_
#define BELAY_CANNSIM_NNOP_TRAITS_H_

#include <string>
#include <vector>

#include "cannsim/nnop/executor.h"

namespace cannsim {

// Bytes of all arguments; operations of products, convolutions and attention.
// Others are bound by their bytes.
TaskCost CostOf(const std::string& name, const Arrays& arrays,
                const std::vector<bool>& outputs);

// The work as the quirks that are on want it.
Kernel WithQuirks(const char* name, const Arrays& arrays,
                  const std::vector<bool>& outputs, Kernel kernel,
                  TaskCost* cost);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_NNOP_TRAITS_H_
