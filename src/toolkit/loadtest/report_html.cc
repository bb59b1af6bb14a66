// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "diag/markup.h"
#include "diag/render.h"
#include "toolkit/loadtest/chart.h"
#include "toolkit/loadtest/report.h"
#include "toolkit/loadtest/summary.h"

namespace belay::loadtest {
namespace {

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--paper:#f6f5f1;--sheet:#fff;--ink:#1d2226;--soft:#565d63;--line:#dcd9d1;--bad:#a3271f;--wash:#f8e7e4;
--c0:#0b6e69;--c1:#b4691f;--c2:#7a3e9d;--c3:#2e5fa8;--c4:#a3271f;--c5:#5b6b1e}
@media(prefers-color-scheme:dark){:root{--paper:#14171a;--sheet:#1c2024;--ink:#e7e6e1;--soft:#a3abb2;--line:#32383e;--bad:#f0938a;--wash:#3a2220;
--c0:#74cabf;--c1:#e0a867;--c2:#c79ae6;--c3:#8fb4ea;--c4:#f0938a;--c5:#b9cb72}}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,"Noto Sans","Noto Sans CJK SC",sans-serif}
main{max-width:62rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.6rem;letter-spacing:-.02em;margin:0}h2{font-size:1.15rem;margin:2.5rem 0 .75rem}h3{font-size:.95rem;font-weight:600;margin:0 0 .25rem}
.soft{color:var(--soft)}.sheet{background:var(--sheet);border:1px solid var(--line);border-radius:14px;padding:1rem 1.1rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .6rem;text-align:right;white-space:nowrap}th:first-child,td:first-child{text-align:left}
thead th{font-weight:500;color:var(--soft);border-bottom:1px solid var(--line)}tbody tr+tr td,tbody tr+tr th{border-top:1px solid var(--line)}tbody th{font-weight:500}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(26rem,100%),1fr));gap:1rem}
.finding{background:var(--wash);border-radius:10px;padding:.6rem .9rem;margin:.5rem 0}.finding b{color:var(--bad)}
svg{display:block;width:100%;height:auto}svg .grid{stroke:var(--line);fill:none;display:inline}
.tick,.name{font-size:12px;fill:var(--soft)}.line{fill:none;stroke-width:2;stroke-linejoin:round}
.l0{stroke:var(--c0)}.l1{stroke:var(--c1)}.l2{stroke:var(--c2)}.l3{stroke:var(--c3)}.l4{stroke:var(--c4)}.l5{stroke:var(--c5)}
.dot{fill:var(--sheet);stroke-width:2}
)";

class HtmlReport {
 public:
  HtmlReport(const LoadReport& report, const diag::Catalogue& catalogue,
             diag::Lang lang)
      : report_(report), catalogue_(catalogue), lang_(lang) {}

  std::string Write() {
    Add("<!doctype html>\n<html lang=\"{}\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\"><title>{}: {}</title><style>{}</style></head>"
        "<body><main>\n",
        lang_ == diag::Lang::kZh ? "zh-CN" : "en", T("Load test", "压力测试"),
        diag::EscapeMarkup(report_.model), kStyle);
    Add("<h1>{}: {}</h1>\n<p class=\"soft\">{} · {} · {} {} · {} {}</p>\n",
        T("Load test", "压力测试"), diag::EscapeMarkup(report_.model),
        diag::EscapeMarkup(report_.plan.url), report_.started,
        report_.plan.prompts.size(), T("prompts", "个提示"),
        T("at most", "最多"),
        fmt::format("{} {}", report_.plan.max_tokens,
                    T("answer tokens", "回答词元")));
    WriteFindings();
    WriteThroughput();
    WriteLatencies();
    WriteCurves();
    WriteDistributions();
    WriteNotes();
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

  void WriteFindings() {
    Add("<h2>{}</h2>\n", T("Findings", "发现的问题"));
    if (report_.findings.empty()) {
      Add("<p>{}</p>\n",
          T("None: every request was answered, every text is sound.",
            "无：所有请求均已回答，文本均正常。"));
    }
    for (const Status& finding : report_.findings) {
      const auto json = diag::ErrorToJson(finding, catalogue_, lang_);
      const ErrorFacts facts = ErrorFactsOf(finding);
      Add("<div class=\"finding\"><b>{}</b> {} · {}: {} ({} {}){}</div>\n",
          ErrorIdOf(finding), diag::EscapeMarkup(json.value("title", "")),
          diag::EscapeMarkup(facts.where), diag::EscapeMarkup(facts.got),
          T("expected", "应为"), diag::EscapeMarkup(facts.expected),
          facts.what.empty() ? "" : " · " + diag::EscapeMarkup(facts.what));
    }
  }

  void Row(const std::string& name, const std::vector<std::string>& cells) {
    Add("<tr><th scope=\"row\">{}</th>", diag::EscapeMarkup(name));
    for (const std::string& cell : cells) Add("<td>{}</td>", cell);
    Add("</tr>\n");
  }
  void BeginTable(const std::vector<std::string>& names) {
    Add("<div class=\"sheet scroll\"><table><thead><tr>");
    for (const std::string& name : names) {
      Add("<th scope=\"col\">{}</th>", name);
    }
    Add("</tr></thead><tbody>\n");
  }
  void EndTable() { Add("</tbody></table></div>\n"); }

  void WriteThroughput() {
    Add("<h2>{}</h2>\n", T("Throughput", "吞吐"));
    BeginTable({T("level", "档位"), T("requests", "请求"), T("fine", "成功"),
                T("failed", "失败"), T("unsound text", "文本异常"),
                T("requests/s", "请求/秒"), T("goodput/s", "有效请求/秒"),
                T("output tokens/s", "输出词元/秒"),
                T("input tokens/s", "输入词元/秒")});
    for (const LevelResult& level : report_.levels) {
      Row(NameOf(level.level),
          {fmt::format("{}", level.samples.size()),
           fmt::format("{}", level.n_ok),
           fmt::format("{}", level.samples.size() - level.n_ok),
           fmt::format("{}", level.n_garbage + level.n_repeats + level.n_empty),
           fmt::format("{:.2f}", level.requests_per_s),
           fmt::format("{:.2f}", level.good_per_s),
           fmt::format("{:.1f}", level.output_tokens_per_s),
           fmt::format("{:.1f}", level.input_tokens_per_s)});
    }
    EndTable();
  }

  void WriteLatencies() {
    Add("<h2>{}</h2>\n", T("Latency in milliseconds", "延迟（毫秒）"));
    BeginTable({T("level", "档位"), "", "P50", "P90", "P99",
                T("largest", "最大"), T("mean", "平均"), "n"});
    for (const LevelResult& level : report_.levels) {
      for (const auto& [name, p] : {std::pair{"TTFT", &level.ttft_s},
                                    {"TPOT", &level.tpot_s},
                                    {"ITL", &level.gap_s},
                                    {"E2E", &level.e2e_s}}) {
        const auto ms = [](double s) {
          return fmt::format("{:.1f}", 1000 * s);
        };
        Row(NameOf(level.level),
            {name, ms(p->p50), ms(p->p90), ms(p->p99), ms(p->max), ms(p->mean),
             fmt::format("{}", p->n)});
      }
    }
    EndTable();
  }

  void AddChart(const Chart& chart) {
    Add("<div class=\"sheet\"><h3>{}</h3>{}</div>\n",
        diag::EscapeMarkup(chart.title), ChartToSvg(chart));
  }

  // A curve needs two levels of one kind.
  void WriteCurves() {
    std::vector<const LevelResult*> levels;
    for (const LevelResult& level : report_.levels) {
      if (level.n_ok > 0) levels.push_back(&level);
    }
    if (levels.size() < 2) return;
    const bool open = levels[0]->level.rate > 0;
    const auto x_of = [&](const LevelResult& level) {
      return open ? level.level.rate : level.level.concurrency;
    };
    const std::string x_name = open ? T("requests a second", "每秒请求数")
                                    : T("requests at once", "并发请求数");
    const auto curve = [&](std::string name, auto value) {
      ChartLine line{.name = std::move(name), .points = {}};
      for (const LevelResult* level : levels) {
        line.points.emplace_back(x_of(*level), value(*level));
      }
      return line;
    };
    Add("<h2>{}</h2><div class=\"grid\">\n", T("Curves", "曲线"));
    AddChart({.title = T("Output tokens a second", "每秒输出词元"),
              .x_name = x_name,
              .y_name = T("tokens/s", "词元/秒"),
              .lines = {curve(
                  T("output", "输出"),
                  [](const LevelResult& l) { return l.output_tokens_per_s; })},
              .x_is_log = true});
    for (const auto& [title, of] :
         {std::pair{T("Time to the first token", "首词元时间"),
                    &LevelResult::ttft_s},
          {T("Time per output token", "每词元时间"), &LevelResult::tpot_s}}) {
      const auto member = of;
      const auto line = [&](const char* name, double Percentiles::*p) {
        return curve(name, [member, p](const LevelResult& l) {
          return 1000 * (l.*member.*p);
        });
      };
      AddChart({.title = title,
                .x_name = x_name,
                .y_name = "ms",
                .lines = {line("P50", &Percentiles::p50),
                          line("P90", &Percentiles::p90),
                          line("P99", &Percentiles::p99)},
                .x_is_log = true});
    }
    Add("</div>\n");
  }

  void WriteDistributions() {
    Add("<h2>{}</h2><div class=\"grid\">\n", T("Distributions", "分布"));
    const auto draw = [&](const char* title, auto value) {
      Chart chart{.title = title,
                  .x_name = "ms",
                  .y_name = T("% of requests below", "低于此值的请求 %"),
                  .lines = {},
                  .x_is_log = false,
                  .steps = true,
                  .y_max = 100};
      for (const LevelResult& level : report_.levels) {
        std::vector<double> values;
        for (const Sample& sample : level.samples) {
          if (sample.ok() && sample.first_s >= 0) {
            values.push_back(1000 * value(sample));
          }
        }
        std::sort(values.begin(), values.end());
        ChartLine line{.name = NameOf(level.level), .points = {}};
        for (size_t i = 0; i < values.size(); ++i) {
          line.points.emplace_back(values[i],
                                   100.0 * static_cast<double>(i + 1) /
                                       static_cast<double>(values.size()));
        }
        if (!line.points.empty()) chart.lines.push_back(std::move(line));
      }
      if (!chart.lines.empty()) AddChart(chart);
    };
    draw(T("Time to the first token", "首词元时间"),
         [](const Sample& s) { return s.ttft_s(); });
    draw(T("Time to the end", "总时间"),
         [](const Sample& s) { return s.e2e_s(); });
    Add("</div>\n");
  }

  void WriteNotes() {
    Add("<h2>{}</h2><p class=\"soft\">{}</p>\n",
        T("How it was measured", "测量方法"),
        T("Times begin when a request was due, not when it could be sent. "
          "Warm-up requests are left out. TPOT is the time after the first "
          "piece of text divided by the further tokens as the server counts "
          "them; ITL is the time between two pieces. Percentiles are nearest "
          "rank. Goodput counts requests that met the SLO with sound text.",
          "计时从请求应当发出的时刻开始，而非实际发出时。预热请求不计入。"
          "TPOT 为首段文本之后的时间除以服务器计数的其余词元数；ITL "
          "为相邻两段文本的间隔。百分位取最近秩。有效请求指满足 SLO "
          "且文本正常的请求。"));
  }

  const LoadReport& report_;
  const diag::Catalogue& catalogue_;
  diag::Lang lang_;
  std::string out_;
};

}  // namespace

std::string ReportToHtml(const LoadReport& report,
                         const diag::Catalogue& catalogue, diag::Lang lang) {
  return HtmlReport(report, catalogue, lang).Write();
}

}  // namespace belay::loadtest
