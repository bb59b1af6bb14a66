// SPDX-License-Identifier: Apache-2.0
// JSON from outside: never an exception, never deep. For spec and checkpoint.
#ifndef BELAY_SPEC_JSON_H_
#define BELAY_SPEC_JSON_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace belay::spec {

// Configs and indices nest three levels deep.
inline constexpr int kMaxJsonDepth = 32;

// The parsed text, or nothing when it is not JSON or nests deeper than
// kMaxJsonDepth.
std::optional<nlohmann::json> ParseJson(std::string_view text);

// A value for an error message: at most about 60 characters, always printable.
std::string ShortJson(const nlohmann::json& value);

}  // namespace belay::spec

#endif  // BELAY_SPEC_JSON_H_
