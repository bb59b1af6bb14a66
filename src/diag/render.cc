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
  const char *codes, *fixed_in, *see, *table, *variable;
  // Of a variable.
  const char *status, *reader, *values, *fallback, *instead, *conflicts;
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
                                "devices",
                                "codes",
                                "fixed in",
                                "see also",
                                "table",
                                "variable",
                                "status",
                                "read by",
                                "values",
                                "default",
                                "right name",
                                "not together with"};
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
                                "适用芯片",
                                "错误码",
                                "修复版本",
                                "另见",
                                "表格",
                                "环境变量",
                                "状态",
                                "读取方",
                                "取值",
                                "默认值",
                                "正确名称",
                                "不可同时设置"};
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

std::string RowsSection(const char* label, const std::vector<std::string>& rows,
                        const RenderOptions& options) {
  return Section(label, Joined(rows, "\n"), options);
}

const char* StatusWord(Variable::Status status, Lang lang) {
  static constexpr const char* kEn[] = {
      "real", "real, but read only by the one named here",
      "real, on its way out", "real, but of a program outside the Ascend stack",
      "wrong name: nobody reads it"};
  static constexpr const char* kZh[] = {
      "真实有效", "有效，但只被下述一方读取", "有效，但即将废弃",
      "有效，但属于昇腾软件栈之外的程序", "名称错误：没有任何程序读取"};
  const auto index = static_cast<size_t>(status);
  return lang == Lang::kZh ? kZh[index] : kEn[index];
}

std::string VariableSection(const Variable& variable,
                            const RenderOptions& options) {
  const Words& words = WordsIn(options.lang);
  std::vector<std::string> rows = {variable.name};
  const auto add = [&](const char* label, const std::string& value) {
    if (!value.empty()) rows.push_back(label + (words.colon + value));
  };
  add(words.status, StatusWord(variable.status, options.lang));
  add(words.reader, variable.reader);
  add(words.values, variable.values);
  add(words.fallback, variable.fallback);
  add(words.instead, variable.instead);
  add(words.conflicts, Joined(variable.conflicts, words.comma));
  return RowsSection(words.variable, rows, options);
}

// Columns as wide as their widest cell; never wrapped, since a broken row
// cannot be read.
std::string TableSection(const Table& table, const RenderOptions& options) {
  std::vector<int> widths;
  for (const std::string& name : table.columns) {
    widths.push_back(DisplayWidth(name));
  }
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
  }
  std::string out =
      "\n" + Paint(WordsIn(options.lang).table, kBold, options.color) + "\n";
  const auto add = [&](const std::vector<std::string>& row) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) {
      line += " " + row[i];
      if (i + 1 == row.size()) break;
      const int n_blanks = widths[i] - DisplayWidth(row[i]) + 1;
      line.append(static_cast<size_t>(n_blanks), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  add(table.columns);
  for (const auto& row : table.rows) add(row);
  return out;
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
  if (entry.variable) out += VariableSection(*entry.variable, options);
  out += Section(words.cause, entry.cause.in(options.lang), options);
  out += Section(words.fix, entry.fix.in(options.lang), options);
  if (!entry.check.empty()) {
    out += Section(words.check, entry.check.in(options.lang), options);
  }
  std::vector<std::string> codes;
  for (const Code& code : entry.codes) {
    codes.push_back(CodeLine(code, entry, options.lang));
  }
  const struct {
    const char* label;
    const std::vector<std::string>& items;
    const char* between;
  } lists[] = {{words.codes, codes, "\n"},
               {words.versions, entry.versions, words.comma},
               {words.socs, entry.socs, words.comma},
               {words.fixed_in, entry.fixed_in, words.comma},
               {words.see, entry.see, words.comma},
               {words.sources, entry.sources, "\n"}};
  for (const auto& list : lists) {
    if (list.items.empty()) continue;
    out += Section(list.label, Joined(list.items, list.between), options);
  }
  if (entry.table) out += TableSection(*entry.table, options);
  return out;
}

std::string CodeLine(const Code& code, const Entry& entry, Lang lang) {
  const Words& words = WordsIn(lang);
  std::string line = code.code;
  if (!code.symbol.empty()) line += " " + code.symbol;
  line += words.open + code.component + words.close + words.colon;
  return line + (code.title.empty() ? entry.title : code.title).in(lang);
}

namespace {

ordered_json CodesToJson(const Entry& entry, Lang lang) {
  ordered_json codes = ordered_json::array();
  for (const Code& code : entry.codes) {
    codes.push_back(
        {{"component", code.component},
         {"code", code.code},
         {"symbol", code.symbol},
         {"title", (code.title.empty() ? entry.title : code.title).in(lang)}});
  }
  return codes;
}

ordered_json VariableToJson(const Variable& variable) {
  return {{"name", variable.name},          {"status", NameOf(variable.status)},
          {"reader", variable.reader},      {"values", variable.values},
          {"default", variable.fallback},   {"allowed", variable.allowed},
          {"range", variable.range},        {"instead", variable.instead},
          {"conflicts", variable.conflicts}};
}

}  // namespace

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
  json["fixed_in"] = entry.fixed_in;
  json["codes"] = CodesToJson(entry, lang);
  json["names"] = entry.names;
  json["see"] = entry.see;
  json["variable"] = nullptr;
  if (entry.variable) json["variable"] = VariableToJson(*entry.variable);
  json["table"] = nullptr;
  if (entry.table) {
    json["table"] = {{"columns", entry.table->columns},
                     {"rows", entry.table->rows}};
  }
  return json;
}

}  // namespace belay::diag
