// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "diag/wrap.h"
#include "toolkit/logs/report/report.h"

namespace belay::logs {
namespace {

constexpr size_t kMaxFollowing = 12;
constexpr size_t kMaxLines = 10;

class TextReport {
 public:
  TextReport(const Diagnosis& diagnosis, const diag::RenderOptions& options)
      : diagnosis_(diagnosis), options_(options) {}

  std::string Write() {
    if (diagnosis_.has_first) {
      First();
      Rest();
      Ranks();
    } else {
      Line(T("Nothing known was found in these logs.",
             "这些日志中没有找到已知的问题。"));
    }
    Waits();
    Clocks();
    Suspicious();
    Line("");
    Line(fmt::format("{}: {} {}, {} {}, {:.1f} MB", T("read", "已读"),
                     diagnosis_.files.size(), T("files", "个文件"),
                     diagnosis_.n_lines, T("lines", "行"),
                     static_cast<double>(diagnosis_.n_bytes) / 1e6));
    return out_;
  }

  std::string WriteOne(const Finding& finding) {
    Head(finding, "");
    Hint(T("fix", "处理"), finding.entry->fix.in(options_.lang));
    return out_;
  }

 private:
  const char* T(const char* en, const char* zh) const {
    return options_.lang == diag::Lang::kZh ? zh : en;
  }
  const char* Colon() const { return T(": ", "："); }
  void Line(const std::string& text) { out_ += text + "\n"; }

  std::string Paint(const std::string& text, const char* color) const {
    return options_.color ? color + text + "\x1b[0m" : text;
  }

  void Hint(const std::string& label, const std::string& text) {
    const std::string head = "  " + label + Colon();
    const int indent = diag::DisplayWidth(head);
    bool is_first = true;
    for (const auto& line :
         diag::WrapLines(text, std::max(options_.width - indent, 20))) {
      Line((is_first ? head : std::string(static_cast<size_t>(indent), ' ')) +
           line);
      is_first = false;
    }
  }

  // "RT-039 title (codes, operator): place"
  void Head(const Finding& finding, const std::string& prefix) {
    std::string line = prefix;
    line += Paint(finding.entry->id, "\x1b[1m") + " " +
            finding.entry->title.in(options_.lang);
    std::string details;
    for (const std::string& code : finding.codes) {
      details += (details.empty() ? "" : ", ") + code;
    }
    if (!finding.op.empty()) {
      details +=
          (details.empty() ? "" : "; ") + diag::EscapeControls(finding.op);
    }
    if (!details.empty()) line += " (" + details + ")";
    Line(line);
    Line("    " + PlaceToText(finding.place, options_.lang) +
         (finding.count > 1
              ? fmt::format(", {} {}", finding.count, T("lines", "行"))
              : ""));
  }

  void First() {
    const Finding& first = diagnosis_.findings[0];
    Head(first, Paint(T("first cause: ", "首个原因："), "\x1b[1;31m"));
    Line("    | " + diag::EscapeControls(first.place.text));
    if (diagnosis_.only_waits) {
      Line(
          T("  Everybody waits for somebody else: the cause is on a rank "
            "whose log is not here,\n  or that stopped without a word.",
            "  "
            "所有进程都在等待别的进程：真正原因在缺失日志的 rank 上，"
            "或该进程未报错即停止。"));
    }
    Hint(T("cause", "原因"), first.entry->cause.in(options_.lang));
    Hint(T("fix", "处理"), first.entry->fix.in(options_.lang));
    for (const diag::Entry* issue : first.known) {
      Hint(T("like", "类似"), issue->id + " " + issue->title.in(options_.lang) +
                                  Colon() + issue->cause.in(options_.lang) +
                                  " " + issue->fix.in(options_.lang));
    }
    Hint(T("more", "详情"), "belay explain " + first.entry->id);
  }

  void Rest() {
    for (const Role role : {Role::kBefore, Role::kFollows}) {
      size_t n = 0;
      for (const Finding& finding : diagnosis_.findings) {
        if (finding.role != role) continue;
        if (n == 0) {
          Line("");
          Line(role == Role::kBefore ? T("earlier, but hardly the cause:",
                                         "更早，但多半不是原因：")
                                     : T("what followed:", "随后发生："));
        }
        if (++n > kMaxFollowing) continue;
        Head(finding, "  ");
      }
      if (n > kMaxFollowing) {
        Line(fmt::format("  ... {} {}", n - kMaxFollowing,
                         T("more (--json)", "条省略（--json）")));
      }
    }
  }

  void Ranks() {
    if (diagnosis_.ranks.size() < 2) return;
    Line("");
    Line(T("first on each rank:", "各 rank 的首个错误："));
    for (const RankCause& rank : diagnosis_.ranks) {
      const std::string id = rank.finding < diagnosis_.findings.size()
                                 ? diagnosis_.findings[rank.finding].entry->id
                                 : "?";
      Line(fmt::format("  {:>4}  {:<12} {} {}:{}", rank.rank, id,
                       rank.place.time, diag::EscapeControls(rank.place.file),
                       rank.place.line));
    }
  }

  void Waits() {
    if (diagnosis_.blamed.empty()) return;
    std::string list;
    for (size_t i = 0; i < std::min<size_t>(8, diagnosis_.blamed.size()); ++i) {
      const auto& [rank, n] = diagnosis_.blamed[i];
      list += fmt::format("{}{} ({})", i == 0 ? "" : ", ", rank, n);
    }
    Line("");
    Line(std::string(T("ranks that others wait for (how often): ",
                       "其他进程所等待的 rank（次数）：")) +
         list);
  }

  void Clocks() {
    for (const FileSummary& file : diagnosis_.files) {
      if (file.n_clock_lines == 0) continue;
      Line(fmt::format(
          "{}{}{:+.1f} s ({} {})", diag::EscapeControls(file.name), Colon(),
          static_cast<double>(file.clock_offset_us) / 1e6, file.n_clock_lines,
          T("common lines): clock corrected", "行共同日志）：已校正时钟")));
    }
  }

  void Suspicious() {
    if (diagnosis_.suspicious.empty()) return;
    Line("");
    Line(diagnosis_.has_first
             ? T("not explained by the catalogue:", "目录未能解释的行：")
             : T("I do not know what these mean; they look worst:",
                 "以下各行含义未知，但最可疑："));
    size_t n = 0;
    for (const auto& [place, score] : diagnosis_.suspicious) {
      if (++n > (diagnosis_.has_first ? kMaxLines / 2 : kMaxLines)) break;
      Line("  " + PlaceToText(place, options_.lang));
      Line("    | " + diag::EscapeControls(place.text));
    }
  }

  const Diagnosis& diagnosis_;
  const diag::RenderOptions& options_;
  std::string out_;
};

}  // namespace

std::string PlaceToText(const Place& place, diag::Lang lang) {
  const bool zh = lang == diag::Lang::kZh;
  std::string text =
      fmt::format("{}:{}", diag::EscapeControls(place.file), place.line);
  if (place.rank >= 0) text += fmt::format(", rank {}", place.rank);
  if (place.device >= 0) {
    text += fmt::format(", {} {}", zh ? "设备" : "device", place.device);
  }
  if (!place.time.empty()) text += ", " + place.time;
  return text;
}

std::string DiagnosisToText(const Diagnosis& diagnosis,
                            const diag::RenderOptions& options) {
  return TextReport(diagnosis, options).Write();
}

std::string FindingToText(const Finding& finding,
                          const diag::RenderOptions& options) {
  const Diagnosis none;
  return TextReport(none, options).WriteOne(finding);
}

}  // namespace belay::logs
