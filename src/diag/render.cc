// SPDX-License-Identifier: Apache-2.0
#include "diag/render.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "diag/wrap.h"

namespace belay::diag {
namespace {

using nlohmann::ordered_json;

// The words around facts.
struct Words {
  const char* severity[3];  // in the order of Severity
  const char *colon, *comma, *open, *close;
  const char *expected, *got;
  const char *fix, *more;
  const char *cause, *check, *sources, *versions, *socs;
};

const Words& WordsIn(Lang lang) {
  static constexpr Words kEn = {{"error", "warning", "info"},
                                ": ",
                                ", ",
                                " (",
                                ")",
                                "expected ",
                                "got ",
                                "fix",
                                "more",
                                "cause",
                                "check",
                                "sources",
                                "versions",
                                "devices"};
  static constexpr Words kZh = {{"错误", "警告", "提示"},
                                "：",
                                "，",
                                "（",
                                "）",
                                "应为 ",
                                "实为 ",
                                "处理",
                                "详情",
                                "原因",
                                "自查",
                                "来源",
                                "适用版本",
                                "适用芯片"};
  return lang == Lang::kZh ? kZh : kEn;
}

constexpr char kBold[] = "\x1b[1m";
constexpr char kRed[] = "\x1b[1;31m";
constexpr char kYellow[] = "\x1b[1;33m";
constexpr char kCyan[] = "\x1b[1;36m";
constexpr char kReset[] = "\x1b[0m";

std::string Paint(const std::string& text, const char* color, bool on) {
  return on ? color + text + kReset : text;
}

const char* ColorOf(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return kRed;
    case Severity::kWarning:
      return kYellow;
    case Severity::kInfo:
      return kCyan;
  }
  return kBold;
}

// " (what, expected E, got G)" or nothing.
std::string Details(const ErrorFacts& facts, const Words& words) {
  std::string text;
  const auto add = [&](const char* label, const std::string& value) {
    if (value.empty()) return;
    text += text.empty() ? words.open : words.comma;
    text += label;
    text += EscapeControls(value);
  };
  add("", facts.what);
  add(words.expected, facts.expected);
  add(words.got, facts.got);
  if (!text.empty()) text += words.close;
  return text;
}

// "  label: text", wrapped, further lines under the text's first letter.
std::string Hint(const std::string& label, const std::string& text,
                 const RenderOptions& options) {
  const Words& words = WordsIn(options.lang);
  const std::string head = "  " + label + words.colon;
  const int indent = DisplayWidth(head);
  std::string out;
  for (const std::string& line : WrapLines(text, options.width - indent)) {
    out += out.empty() ? head : std::string(static_cast<size_t>(indent), ' ');
    out += line + "\n";
  }
  return out;
}

std::string Section(const char* label, const std::string& text,
                    const RenderOptions& options) {
  std::string out = "\n" + Paint(label, kBold, options.color) + "\n";
  for (const std::string& line : WrapLines(text, options.width - 2)) {
    out += line.empty() ? "\n" : "  " + line + "\n";
  }
  return out;
}

std::string Joined(const std::vector<std::string>& items, const char* between) {
  std::string text;
  for (const std::string& item : items) {
    if (!text.empty()) text += between;
    text += item;
  }
  return text;
}

}  // namespace

std::string EscapeControls(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<uint8_t>(text[i]);
    // U+0080 to U+009F (0xc2 0x80..0x9f) control terminals as well.
    const bool is_c1 = c == 0xc2 && i + 1 < text.size() &&
                       static_cast<uint8_t>(text[i + 1]) >= 0x80 &&
                       static_cast<uint8_t>(text[i + 1]) < 0xa0;
    if (is_c1) ++i;
    if (is_c1 || c < 0x20 || c == 0x7f) {
      const auto code = is_c1 ? static_cast<uint8_t>(text[i]) : c;
      out += "\\x";
      out += kHex[code >> 4];
      out += kHex[code & 15];
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string RenderError(const Status& status, const Catalogue& catalogue,
                        const RenderOptions& options) {
  const Words& words = WordsIn(options.lang);
  const std::string id = ErrorIdOf(status);
  const ErrorFacts facts = ErrorFactsOf(status);
  const Entry* entry = catalogue.Find(id);
  const Severity severity =
      entry != nullptr ? entry->severity : Severity::kError;

  std::string head = words.severity[static_cast<size_t>(severity)];
  if (!id.empty()) head += " " + id;
  std::string out = Paint(head, ColorOf(severity), options.color);
  out += words.colon;
  if (entry == nullptr) {  // no title: the facts have to do
    out +=
        EscapeControls(id.empty() ? facts.what : std::string(status.message()));
    return out + "\n";
  }
  if (!facts.where.empty()) out += EscapeControls(facts.where) + words.colon;
  out += entry->title.in(options.lang) + Details(facts, words) + "\n";
  out += Hint(words.fix, entry->fix.in(options.lang), options);
  out += Hint(words.more, "belay explain " + id, options);
  return out;
}

ordered_json ErrorToJson(const Status& status, const Catalogue& catalogue,
                         Lang lang) {
  const std::string id = ErrorIdOf(status);
  const ErrorFacts facts = ErrorFactsOf(status);
  const Entry* entry = catalogue.Find(id);
  ordered_json json;
  json["id"] = id;
  json["severity"] =
      NameOf(entry != nullptr ? entry->severity : Severity::kError);
  json["where"] = facts.where;
  json["what"] = facts.what;
  json["expected"] = facts.expected;
  json["got"] = facts.got;
  json["title"] = entry != nullptr ? entry->title.in(lang) : "";
  json["fix"] = entry != nullptr ? entry->fix.in(lang) : "";
  return json;
}

std::string RenderEntry(const Entry& entry, const RenderOptions& options) {
  const Words& words = WordsIn(options.lang);
  const std::string head =
      std::string(words.severity[static_cast<size_t>(entry.severity)]) + " " +
      entry.id;
  std::string out =
      Paint(head, ColorOf(entry.severity), options.color) + words.colon;
  out += entry.title.in(options.lang) + "\n";
  out += Section(words.cause, entry.cause.in(options.lang), options);
  out += Section(words.fix, entry.fix.in(options.lang), options);
  if (!entry.check.empty()) {
    out += Section(words.check, entry.check.in(options.lang), options);
  }
  if (!entry.versions.empty()) {
    out +=
        Section(words.versions, Joined(entry.versions, words.comma), options);
  }
  if (!entry.socs.empty()) {
    out += Section(words.socs, Joined(entry.socs, words.comma), options);
  }
  if (!entry.sources.empty()) {
    out += Section(words.sources, Joined(entry.sources, "\n"), options);
  }
  return out;
}

ordered_json EntryToJson(const Entry& entry, Lang lang) {
  ordered_json json;
  json["id"] = entry.id;
  json["area"] = entry.area;
  json["kind"] = NameOf(entry.kind);
  json["severity"] = NameOf(entry.severity);
  json["lang"] = lang == Lang::kZh ? "zh" : "en";
  json["title"] = entry.title.in(lang);
  json["cause"] = entry.cause.in(lang);
  json["fix"] = entry.fix.in(lang);
  json["check"] = entry.check.in(lang);
  json["sources"] = entry.sources;
  json["versions"] = entry.versions;
  json["socs"] = entry.socs;
  return json;
}

}  // namespace belay::diag
