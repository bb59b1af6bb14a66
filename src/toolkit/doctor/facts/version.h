// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TOOLKIT_DOCTOR_FACTS_VERSION_H_
#define BELAY_TOOLKIT_DOCTOR_FACTS_VERSION_H_

#include <string>
#include <string_view>
#include <vector>

namespace belay::doctor {

// The parts of "8.3.RC1", "25.3.rc1.1", "2.9.0.post2", "9.0.0-beta.2": numbers
// as they are; alpha, beta and rc count below any number, post above none.
std::vector<int> VersionParts(std::string_view version);

// Negative, 0 or positive as a is older, the same or newer. Missing parts are
// 0: 8.5 is 8.5.0, and newer than 8.5.RC1.
int CompareVersions(std::string_view a, std::string_view b);

// Whether the first `n` numbers are the same: 8.5.0 and 8.5.1 for 2.
bool IsSameRelease(std::string_view a, std::string_view b, size_t n);

// "2.9.0" of "2.9.0.post2", "2.9.0+cpu", "v2.9.0rc1".
std::string BaseVersion(std::string_view version);

}  // namespace belay::doctor

#endif  // BELAY_TOOLKIT_DOCTOR_FACTS_VERSION_H_
