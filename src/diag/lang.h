// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_DIAG_LANG_H_
#define BELAY_DIAG_LANG_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace belay::diag {

enum class Lang : uint8_t { kEn, kZh };

// "en" or "zh"; nothing for any other text.
std::optional<Lang> ParseLang(std::string_view name);

// The language that the values of LC_ALL, LC_MESSAGES and LANG ask for (POSIX:
// the first that is not empty decides). Chinese needs a locale "zh", "zh_*" or
// "zh-*" that is UTF-8 or names no character set: our texts are UTF-8, and on a
// GBK terminal English can at least be read. All else is English.
Lang LangFromLocale(std::string_view lc_all, std::string_view lc_messages,
                    std::string_view lang);

}  // namespace belay::diag

#endif  // BELAY_DIAG_LANG_H_
