// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <vector>

#include "diag/markup.h"
#include "diag/render.h"
#include "toolkit/logs/report/report.h"

namespace belay::logs {
namespace {

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--paper:#f6f5f1;--sheet:#fff;--ink:#1d2226;--soft:#565d63;--line:#dcd9d1;--bad:#a3271f;--wash:#f8e7e4;--mark:#0b6e69;--wait:#b4691f}
@media(prefers-color-scheme:dark){:root{--paper:#14171a;--sheet:#1c2024;--ink:#e7e6e1;--soft:#a3abb2;--line:#32383e;--bad:#f0938a;--wash:#3a2220;--mark:#74cabf;--wait:#e0a867}}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,"Noto Sans","Noto Sans CJK SC",sans-serif}
main{max-width:62rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.6rem;letter-spacing:-.02em;margin:0}h2{font-size:1.15rem;margin:2.5rem 0 .75rem}
.soft{color:var(--soft)}.sheet{background:var(--sheet);border:1px solid var(--line);border-radius:14px;padding:1rem 1.1rem;margin:.75rem 0}
.first{background:var(--wash)}.first h3{color:var(--bad)}h3{font-size:1rem;margin:0 0 .35rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.5 ui-monospace,monospace;margin:.4rem 0;color:var(--soft)}
dt{font-weight:600;font-size:.85rem;color:var(--soft)}dd{margin:0 0 .5rem}dl{margin:.4rem 0 0}
svg{display:block;width:100%;height:auto}.lane{stroke:var(--line)}.tick{font-size:12px;fill:var(--soft)}
.dot{fill:var(--mark)}.dot.wait{fill:var(--wait)}.dot.cause{fill:var(--bad)}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}th,td{padding:.3rem .6rem;text-align:left;vertical-align:top}
thead th{font-weight:500;color:var(--soft);border-bottom:1px solid var(--line)}tbody tr+tr td{border-top:1px solid var(--line)}td{overflow-wrap:anywhere}
)";

class HtmlReport {
 public:
  HtmlReport(const Diagnosis& diagnosis, diag::Lang lang)
      : d_(diagnosis), lang_(lang) {}

  std::string Write() {
    Add("<!doctype html>\n<html lang=\"{}\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\"><title>{}</title><style>{}</style></head>"
        "<body><main>\n<h1>{}</h1>\n",
        lang_ == diag::Lang::kZh ? "zh-CN" : "en", T("Logs", "日志诊断"),
        kStyle, T("What the logs say", "日志诊断"));
    Add("<p class=\"soft\">{} {} · {} {} · {:.1f} MB</p>\n", d_.files.size(),
        T("files", "个文件"), d_.n_lines, T("lines", "行"),
        static_cast<double>(d_.n_bytes) / 1e6);
    if (!d_.has_first) {
      Add("<p>{}</p>\n", T("Nothing known was found.", "未找到已知问题。"));
    }
    Timeline();
    for (const Finding& finding : d_.findings) Card(finding);
    Suspicious();
    return out_ + "</main></body></html>\n";
  }

 private:
  const char* T(const char* en, const char* zh) const {
    return lang_ == diag::Lang::kZh ? zh : en;
  }
  template <typename... Args>
  void Add(fmt::format_string<Args...> form, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), form, std::forward<Args>(args)...);
  }
  static std::string Safe(const std::string& text) {
    return diag::EscapeMarkup(diag::EscapeControls(text));
  }

  // A lane for each rank (or file), a dot for the first of each finding.
  void Timeline() {
    std::map<std::string, std::vector<std::pair<int64_t, const char*>>> lanes;
    int64_t first = std::numeric_limits<int64_t>::max();
    int64_t last = std::numeric_limits<int64_t>::min();
    const auto put = [&](const Place& place, const char* kind) {
      if (!place.us) return;
      const std::string lane =
          place.rank >= 0 ? fmt::format("rank {:>4}", place.rank)
                          : place.file.substr(place.file.rfind('/') + 1);
      lanes[lane].emplace_back(*place.us, kind);
      first = std::min(first, *place.us);
      last = std::max(last, *place.us);
    };
    for (const Finding& finding : d_.findings) {
      put(finding.place, finding.role == Role::kFirst  ? "cause"
                         : finding.tier == Tier::kWait ? "wait"
                                                       : "");
    }
    for (const RankCause& rank : d_.ranks) {
      const bool waits = rank.finding < d_.findings.size() &&
                         d_.findings[rank.finding].tier == Tier::kWait;
      put(rank.place, waits ? "wait" : "");
    }
    if (lanes.empty() || first == last) return;
    constexpr double kLeft = 150, kWidth = 780, kRow = 22;
    const double height = kRow * static_cast<double>(lanes.size()) + 34;
    Add("<h2>{}</h2><div class=\"sheet scroll\"><svg viewBox=\"0 0 960 "
        "{:.0f}\" role=\"img\" aria-label=\"{}\">\n",
        T("Timeline", "时间线"), height, T("Timeline", "时间线"));
    double y = 18;
    const auto span = static_cast<double>(last - first);
    for (const auto& [name, dots] : lanes) {
      Add("<text class=\"tick\" x=\"4\" y=\"{:.0f}\">{}</text><line "
          "class=\"lane\" x1=\"{:.0f}\" x2=\"{:.0f}\" y1=\"{:.0f}\" "
          "y2=\"{:.0f}\"/>\n",
          y + 4, Safe(name.substr(0, 20)), kLeft, kLeft + kWidth, y, y);
      for (const auto& [us, kind] : dots) {
        Add("<circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.0f}\" r=\"5\"/>\n",
            kind, kLeft + kWidth * static_cast<double>(us - first) / span, y);
      }
      y += kRow;
    }
    Add("<text class=\"tick\" x=\"{:.0f}\" y=\"{:.0f}\">0</text><text "
        "class=\"tick\" text-anchor=\"end\" x=\"{:.0f}\" y=\"{:.0f}\">+{:.3f} "
        "s</text></svg></div>\n",
        kLeft, y + 6, kLeft + kWidth, y + 6, span / 1e6);
  }

  void Card(const Finding& finding) {
    const diag::Entry& entry = *finding.entry;
    const bool is_first = finding.role == Role::kFirst;
    Add("<section class=\"sheet{}\"><h3>{}{} {}</h3><p class=\"soft\">{}</p>"
        "<pre>{}</pre>",
        is_first ? " first" : "",
        is_first ? T("First cause: ", "首个原因：") : "", entry.id,
        diag::EscapeMarkup(entry.title.in(lang_)),
        Safe(PlaceToText(finding.place, lang_)), Safe(finding.place.text));
    std::string codes;
    for (const std::string& code : finding.codes) {
      codes += (codes.empty() ? "" : ", ") + code;
    }
    Add("<dl>");
    Row(T("codes", "错误码"), Safe(codes));
    Row(T("operator", "算子"), Safe(finding.op));
    Row(T("cause", "原因"), diag::EscapeMarkup(entry.cause.in(lang_)));
    Row(T("fix", "处理"), diag::EscapeMarkup(entry.fix.in(lang_)));
    for (const diag::Entry* issue : finding.known) {
      Row(T("like", "类似"),
          diag::EscapeMarkup(issue->id + " " + issue->title.in(lang_) + " " +
                             issue->cause.in(lang_) + " " +
                             issue->fix.in(lang_)));
    }
    Add("</dl></section>\n");
  }

  void Row(const char* name, const std::string& markup) {
    if (markup.empty()) return;
    Add("<dt>{}</dt><dd>{}</dd>", name, markup);
  }

  void Suspicious() {
    if (d_.suspicious.empty()) return;
    Add("<h2>{}</h2><div class=\"sheet scroll\"><table><thead><tr><th>{}</th>"
        "<th>{}</th></tr></thead><tbody>\n",
        T("Lines that the catalogue does not explain", "目录未能解释的行"),
        T("where", "位置"), T("line", "内容"));
    for (const auto& [place, score] : d_.suspicious) {
      Add("<tr><td>{}</td><td><pre>{}</pre></td></tr>\n",
          Safe(PlaceToText(place, lang_)), Safe(place.text));
    }
    Add("</tbody></table></div>\n");
  }

  const Diagnosis& d_;
  diag::Lang lang_;
  std::string out_;
};

}  // namespace

std::string DiagnosisToHtml(const Diagnosis& diagnosis, diag::Lang lang) {
  return HtmlReport(diagnosis, lang).Write();
}

}  // namespace belay::logs
