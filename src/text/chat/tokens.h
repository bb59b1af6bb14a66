// SPDX-License-Identifier: Apache-2.0
// The markers of the DeepSeek-V4 chat encoding, as text. Each but the DSML tag
// names is one special token of the vocabulary. The bars are U+FF5C, the
// blanks in the sentence markers U+2581. Source: encoding_dsv4.py (sha256
// bdbd57c1...), tokenizer.json of DeepSeek-V4.
#ifndef BELAY_TEXT_CHAT_TOKENS_H_
#define BELAY_TEXT_CHAT_TOKENS_H_

#include <string_view>

namespace belay::text {

inline constexpr std::string_view kBos = "<｜begin▁of▁sentence｜>";
inline constexpr std::string_view kEos = "<｜end▁of▁sentence｜>";
inline constexpr std::string_view kUserMark = "<｜User｜>";
inline constexpr std::string_view kAssistantMark = "<｜Assistant｜>";
inline constexpr std::string_view kReminderMark = "<｜latest_reminder｜>";
inline constexpr std::string_view kThinkBegin = "<think>";
inline constexpr std::string_view kThinkEnd = "</think>";

// DSML, the markup of tool calls.
inline constexpr std::string_view kDsml = "｜DSML｜";
inline constexpr std::string_view kCallsBegin = "<｜DSML｜tool_calls";
inline constexpr std::string_view kCallsEnd = "</｜DSML｜tool_calls";
inline constexpr std::string_view kInvokeBegin = "<｜DSML｜invoke";
inline constexpr std::string_view kInvokeEnd = "</｜DSML｜invoke";
inline constexpr std::string_view kParameterBegin = "<｜DSML｜parameter";
inline constexpr std::string_view kParameterEnd = "</｜DSML｜parameter";

}  // namespace belay::text

#endif  // BELAY_TEXT_CHAT_TOKENS_H_
