// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/model/token_args.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error_ids.h"
#include "base/file.h"

namespace belay::apps {
namespace {

Status BadTokens(const std::string& where, std::string expected,
                 std::string got) {
  constexpr size_t kLongest = 40;  // of what the user typed, in a message
  if (got.size() > kLongest) got = got.substr(0, kLongest) + "...";
  return MakeError(kArgBadTokens, {.where = where,
                                   .what = "",
                                   .expected = std::move(expected),
                                   .got = std::move(got)});
}

}  // namespace

Status EmptyPrompt(const std::string& where) {
  return MakeError(kArgEmptyPrompt,
                   {.where = where, .what = "", .expected = "", .got = ""});
}

StatusOr<std::vector<int32_t>> ParseTokens(const std::string& list,
                                           const std::string& option) {
  std::vector<int32_t> ids;
  std::string_view rest = list;
  if (rest.empty()) return EmptyPrompt(option);
  while (true) {
    const size_t comma = rest.find(',');
    std::string_view piece = rest.substr(0, comma);
    while (!piece.empty() && piece.front() == ' ') piece.remove_prefix(1);
    while (!piece.empty() && piece.back() == ' ') piece.remove_suffix(1);
    int32_t id = 0;
    const auto [end, error] =
        std::from_chars(piece.data(), piece.data() + piece.size(), id);
    if (error != std::errc() || end != piece.data() + piece.size()) {
      return BadTokens(option, "5,7,9", std::string(piece));
    }
    ids.push_back(id);
    if (comma == std::string_view::npos) return ids;
    rest.remove_prefix(comma + 1);
  }
}

StatusOr<std::vector<int32_t>> ReadTokensFile(const std::string& path) {
  BELAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const auto json = nlohmann::json::parse(text, nullptr,
                                          /*allow_exceptions=*/false);
  if (!json.is_array()) {
    return BadTokens(path, "[5, 7, 9]",
                     json.is_discarded() ? "no JSON" : json.type_name());
  }
  std::vector<int32_t> ids;
  for (const auto& value : json) {
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() ||
                       value.get<uint64_t>() <= static_cast<uint64_t>(kMax)) &&
                      value.get<int64_t>() >= -kMax;
    if (!fits) {
      // dump() calls itself for each level of nesting: never for a list.
      return BadTokens(
          path, "[5, 7, 9]",
          value.is_structured() ? value.type_name() : value.dump());
    }
    ids.push_back(value.get<int32_t>());
  }
  if (ids.empty()) return EmptyPrompt(path);
  return ids;
}

StatusOr<std::vector<int32_t>> TokensFrom(const std::string& list,
                                          const std::string& path) {
  if (path.empty()) return ParseTokens(list, "--tokens");
  if (list.empty()) return ReadTokensFile(path);
  return MakeError(kArgUsage, {.where = "--tokens, --tokens-file",
                               .what = "",
                               .expected = "1",
                               .got = "2"});
}

}  // namespace belay::apps
