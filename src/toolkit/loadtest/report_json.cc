// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "diag/render.h"
#include "toolkit/loadtest/report.h"
#include "toolkit/loadtest/summary.h"

namespace belay::loadtest {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const Percentiles& p) {
  Json json;
  json["n"] = p.n;
  for (const auto& [name, value] : {std::pair{"mean", p.mean},
                                    {"p50", p.p50},
                                    {"p90", p.p90},
                                    {"p99", p.p99},
                                    {"max", p.max}}) {
    json[name] = value * 1000;
  }
  return json;
}

Json ToJson(const LevelResult& level) {
  Json json;
  json["name"] = NameOf(level.level);
  if (level.level.rate > 0) {
    json["rate"] = level.level.rate;
    json["worst_client_lag_ms"] = level.worst_lag_s * 1000;
  } else {
    json["concurrency"] = level.level.concurrency;
  }
  json["seconds"] = level.seconds;
  json["stopped"] = level.stopped;
  json["warmup_requests"] = level.n_warmup;
  json["requests"] = level.samples.size();
  json["ok"] = level.n_ok;
  json["good"] = level.n_good;
  json["errors"] = Json::object();
  for (const auto& [kind, n] : level.errors) json["errors"][kind] = n;
  json["text"] = {{"garbage", level.n_garbage},
                  {"repeats", level.n_repeats},
                  {"empty", level.n_empty},
                  {"cut", level.n_cut},
                  {"prompts_with_differing_answers", level.n_differing}};
  json["requests_per_s"] = level.requests_per_s;
  json["good_per_s"] = level.good_per_s;
  json["input_tokens_per_s"] = level.input_tokens_per_s;
  json["output_tokens_per_s"] = level.output_tokens_per_s;
  json["ttft_ms"] = ToJson(level.ttft_s);
  json["tpot_ms"] = ToJson(level.tpot_s);
  json["itl_ms"] = ToJson(level.gap_s);
  json["e2e_ms"] = ToJson(level.e2e_s);
  return json;
}

}  // namespace

Json ReportToJson(const LoadReport& report, const diag::Catalogue& catalogue,
                  diag::Lang lang) {
  Json json;
  json["schema"] = 1;
  json["url"] = report.plan.url;
  json["model"] = report.model;
  json["started"] = report.started;
  json["temperature"] = report.plan.temperature;
  json["max_tokens"] = report.plan.max_tokens;
  json["prompts"] = report.plan.prompts.size();
  if (report.plan.slo.is_set()) {
    Json& slo = json["slo"];
    const Slo& s = report.plan.slo;
    if (s.ttft_s) slo["ttft_ms"] = *s.ttft_s * 1000;
    if (s.tpot_s) slo["tpot_ms"] = *s.tpot_s * 1000;
    if (s.e2e_s) slo["e2e_ms"] = *s.e2e_s * 1000;
    slo["share"] = s.share;
  }
  json["levels"] = Json::array();
  for (const LevelResult& level : report.levels) {
    json["levels"].push_back(ToJson(level));
  }
  json["findings"] = Json::array();
  for (const Status& finding : report.findings) {
    json["findings"].push_back(diag::ErrorToJson(finding, catalogue, lang));
  }
  return json;
}

}  // namespace belay::loadtest
