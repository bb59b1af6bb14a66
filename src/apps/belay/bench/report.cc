// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/bench/report.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "apps/belay/bench/chart.h"
#include "diag/markup.h"

namespace belay::apps {
namespace {

using Json = nlohmann::ordered_json;

Json SpreadJson(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

Json ResultJson(const BenchResult& r) {
  return {{"test", NameOf(r.what)},
          {"context", r.what.context},
          {"batch", r.what.batch},
          {"tokens", r.what.n_tokens},
          {"repetitions", r.what.repetitions},
          {"tokens_per_second", SpreadJson(r.tokens_per_second)},
          {"bandwidth_gb_per_second", SpreadJson(r.bandwidth)},
          {"bandwidth_share", SpreadJson(r.share)},
          {"bytes_per_step", r.bytes_per_step},
          {"flops_per_token", r.flops_per_token}};
}

// A path may hold what CSV and HTML have a meaning for.
std::string CsvField(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) {
    return std::string(text);
  }
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

ChartPoint PointOf(int64_t x, const BenchResult& r) {
  return {static_cast<double>(x), r.tokens_per_second.median,
          r.tokens_per_second.min, r.tokens_per_second.max};
}

// Prefill over the length; decode over context, a curve a batch, and over
// batch, a curve a context.
std::vector<Chart> ChartsOf(const std::vector<BenchResult>& results) {
  Chart prefill = {"Prefill", "prompt tokens", "tokens / s", {{"", {}}}};
  std::map<int64_t, ChartLine> by_batch;
  std::map<int64_t, ChartLine> by_context;
  for (const BenchResult& r : results) {
    if (r.what.prefill) {
      prefill.lines[0].points.push_back(PointOf(r.what.n_tokens, r));
      continue;
    }
    ChartLine& batch = by_batch[r.what.batch];
    batch.name = fmt::format("batch {}", r.what.batch);
    batch.points.push_back(PointOf(r.what.context, r));
    ChartLine& context = by_context[r.what.context];
    context.name = fmt::format("context {}", r.what.context);
    context.points.push_back(PointOf(r.what.batch, r));
  }
  Chart over_context = {
      "Decode over context", "tokens in the cache", "tokens / s", {}};
  for (auto& [n, line] : by_batch) over_context.lines.push_back(line);
  Chart over_batch = {
      "Decode over batch", "sequences", "tokens / s, all sequences", {}};
  for (auto& [n, line] : by_context) over_batch.lines.push_back(line);
  return {prefill, over_context, over_batch};
}

std::string HtmlTable(const std::vector<BenchResult>& results) {
  std::string html =
      "<table><tr><th>test<th>context<th>batch<th>tokens<th>tokens / s"
      "<th>smallest<th>largest<th>memory, GB/s<th>share of it, %"
      "<th>GFLOP/s</tr>\n";
  for (const BenchResult& r : results) {
    html += fmt::format(
        "<tr><td>{}<td>{}<td>{}<td>{}<td>{:.1f}<td>{:.1f}<td>{:.1f}<td>{:.1f}"
        "<td>{:.1f}<td>{:.1f}</tr>\n",
        NameOf(r.what), r.what.context, r.what.batch, r.what.n_tokens,
        r.tokens_per_second.median, r.tokens_per_second.min,
        r.tokens_per_second.max, r.bandwidth.median, 100 * r.share.median,
        r.tokens_per_second.median * r.flops_per_token / 1e9);
  }
  return html + "</table>\n";
}

constexpr std::string_view kPageHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>belay bench</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light dark; --fg: #1b1b1f; --soft: #8a8a94; --bg: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --fg: #e8e8ec; --soft: #8a8a94; --bg: #141417; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--fg);
  background: var(--bg); max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--fg); font-size: 12px; }
svg .grid { stroke: var(--soft); stroke-width: .5; opacity: .5; }
table { border-collapse: collapse; } th { font-weight: 600; }
td, th { text-align: right; padding: .2rem .6rem; }
td:first-child, th:first-child { text-align: left; }
tr + tr td { border-top: 1px solid color-mix(in srgb, var(--soft) 40%, transparent); }
</style></head><body>
<h1>belay bench</h1>
)";

}  // namespace

const char* NameOf(const BenchCase& what) {
  return what.prefill ? "prefill" : "decode";
}

std::string TableHead(const BenchSubject& s, const char* threads) {
  return fmt::format(
      "{}: {}, {} ({}), {} {}\n{:8} {:>8} {:>6} {:>7}  {:>9}  {:^19}  {:>7}  "
      "{:>8}  {:>8}\n",
      s.model, s.dtype, s.backend, s.simd_target, s.threads, threads, "test",
      "context", "batch", "tokens", "tok/s", "min - max", "GB/s", "of it",
      "GFLOP/s");
}

std::string TableRow(const BenchResult& r) {
  return fmt::format(
      "{:8} {:>8} {:>6} {:>7}  {:>9.1f}  {:>8.1f} - {:<8.1f}  {:>7.1f}  "
      "{:>6.1f} %  {:>8.1f}\n",
      NameOf(r.what), r.what.context, r.what.batch, r.what.n_tokens,
      r.tokens_per_second.median, r.tokens_per_second.min,
      r.tokens_per_second.max, r.bandwidth.median, 100 * r.share.median,
      r.tokens_per_second.median * r.flops_per_token / 1e9);
}

std::string ToCsv(const BenchSubject& s,
                  const std::vector<BenchResult>& results) {
  std::string csv =
      "model,dtype,simd_target,threads,test,context,batch,tokens,repetitions,"
      "tok_s_median,tok_s_min,tok_s_max,read_gb_s_median,read_share_median,"
      "bytes_per_step,flops_per_token\n";
  for (const BenchResult& r : results) {
    csv += fmt::format(
        "{},{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},"
        "{:.4f},{:.0f},{:.0f}\n",
        CsvField(s.model), s.dtype, s.simd_target, s.threads, NameOf(r.what),
        r.what.context, r.what.batch, r.what.n_tokens, r.what.repetitions,
        r.tokens_per_second.median, r.tokens_per_second.min,
        r.tokens_per_second.max, r.bandwidth.median, r.share.median,
        r.bytes_per_step, r.flops_per_token);
  }
  return csv;
}

Json ToJson(const BenchSubject& s, const std::vector<BenchResult>& results) {
  Json list = Json::array();
  for (const BenchResult& r : results) list.push_back(ResultJson(r));
  return {{"model", s.model},
          {"dtype", s.dtype},
          {"backend", s.backend},
          {"numerics", s.numerics},
          {"simd_target", s.simd_target},
          {"threads", s.threads},
          {"weight_bytes", s.weight_bytes},
          {"load_seconds", s.load_seconds},
          {"results", list}};
}

std::string ToHtml(const BenchSubject& s,
                   const std::vector<BenchResult>& results) {
  std::string html(kPageHead);
  html += fmt::format(
      "<p>{}: {}, {:.1f} MiB of weights; {} ({}), {} numerics, {} threads. "
      "Medians; bars and the columns beside them are the smallest and largest "
      "repetition. The share is of the memory bandwidth measured beside each "
      "repetition.</p>\n",
      diag::EscapeMarkup(s.model), s.dtype,
      static_cast<double>(s.weight_bytes) / (1 << 20), s.backend, s.simd_target,
      s.numerics, s.threads);
  for (const Chart& chart : ChartsOf(results)) html += ToSvg(chart);
  return html + HtmlTable(results) + "</body></html>\n";
}

}  // namespace belay::apps
