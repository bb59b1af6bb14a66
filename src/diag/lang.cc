// SPDX-License-Identifier: Apache-2.0
#include "diag/lang.h"

#include <cctype>
#include <string>

namespace belay::diag {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return lower;
}

}  // namespace

std::optional<Lang> ParseLang(std::string_view name) {
  if (name == "en") return Lang::kEn;
  if (name == "zh") return Lang::kZh;
  return std::nullopt;
}

Lang LangFromLocale(std::string_view lc_all, std::string_view lc_messages,
                    std::string_view lang) {
  const std::string locale = Lower(!lc_all.empty()        ? lc_all
                                   : !lc_messages.empty() ? lc_messages
                                                          : lang);
  // language[_territory][.charset][@modifier]
  const std::string_view all =
      std::string_view(locale).substr(0, std::string_view(locale).find('@'));
  const size_t dot = all.find('.');
  const std::string_view name = all.substr(0, dot);
  const std::string_view charset =
      dot == std::string_view::npos ? "utf-8" : all.substr(dot + 1);
  const bool is_zh =
      name == "zh" || name.substr(0, 3) == "zh_" || name.substr(0, 3) == "zh-";
  const bool is_utf8 = charset == "utf-8" || charset == "utf8";
  return is_zh && is_utf8 ? Lang::kZh : Lang::kEn;
}

}  // namespace belay::diag
