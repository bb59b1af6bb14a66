// SPDX-License-Identifier: Apache-2.0
#include "spec/json.h"

#include <utility>

namespace belay::spec {
namespace {

using Json = nlohmann::json;

// Brackets outside strings. Counted before parsing, since the tree of deeply
// nested input costs a hundred times its text.
bool NestsTooDeep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > kMaxJsonDepth) return true;
  }
  return false;
}

}  // namespace

std::optional<Json> ParseJson(std::string_view text) {
  if (NestsTooDeep(text)) return std::nullopt;
  Json root = Json::parse(text.begin(), text.end(), nullptr,
                          /*allow_exceptions=*/false);
  if (root.is_discarded()) return std::nullopt;
  return root;
}

std::string ShortJson(const Json& value) {
  constexpr size_t kMaxCharacters = 60;
  const std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true,
                                      Json::error_handler_t::replace);
  return text.size() <= kMaxCharacters ? text
                                       : text.substr(0, kMaxCharacters) + "...";
}

}  // namespace belay::spec
