// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "base/error_ids.h"
#include "server/api/json_writer.h"
#include "server/handlers.h"

namespace belay::server {
namespace {

const char* NameOf(Stage stage) {
  switch (stage) {
    case Stage::kLoading:
      return "loading";
    case Stage::kCanary:
      return "canary";
    case Stage::kReady:
      return "ready";
    case Stage::kFailed:
      return "failed";
  }
  return "";
}

void WriteFindings(const Readiness& readiness, const Exchange& exchange,
                   JsonWriter& json) {
  json.Array();
  for (const CanaryFinding& finding : readiness.findings) {
    json.Object().Key("check").String(finding.stage);
    json.Key("result").String(
        finding.status.ok() ? "passed"
                            : (finding.is_warning ? "warning" : "failed"));
    if (!finding.status.ok()) {
      json.Key("code").String(ErrorIdOf(finding.status));
      json.Key("message").String(exchange.MessageOf(finding.status));
    }
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace

uint64_t Desk::Random() {
  const std::lock_guard lock(mutex_);
  return random_();
}

StatusOr<std::shared_ptr<const ModelInfo>> ReadyModel(const Desk& desk) {
  if (desk.draining) return MakeError(kApiDraining, ErrorFacts{});
  const Readiness readiness = desk.runner->readiness();
  if (readiness.stage == Stage::kReady) return desk.runner->info();
  const int percent = static_cast<int>(readiness.loaded * 100);
  std::string state = NameOf(readiness.stage);
  if (readiness.stage == Stage::kLoading) {
    state += " " + std::to_string(percent) + " %";
  } else if (readiness.stage == Stage::kFailed) {
    state = ErrorIdOf(readiness.error);
  }
  return MakeError(kApiNotReady,
                   {.where = "", .what = state, .expected = "", .got = ""});
}

void HandleModels(std::unique_ptr<Exchange> exchange, Desk& desk) {
  const auto model = ReadyModel(desk);
  if (!model.ok()) return exchange->Fail(model.status(), 2);
  const std::string& path = exchange->request().path;
  constexpr std::string_view kOne = "/v1/models/";
  const bool is_one = path.starts_with(kOne);
  if (is_one && path.substr(kOne.size()) != (*model)->name) {
    return exchange->Fail(MakeError(
        kApiUnknownModel,
        {.where = "model", .what = "", .expected = (*model)->name, .got = ""}));
  }
  std::string out;
  JsonWriter json(&out);
  if (!is_one) json.Object().Key("object").String("list").Key("data").Array();
  json.Object();
  json.Key("id").String((*model)->name);
  json.Key("object").String("model");
  json.Key("created").Int((*model)->created_unix_s);
  json.Key("owned_by").String("belay");
  json.Key("max_model_len").Int((*model)->max_context);
  json.EndObject();
  if (!is_one) json.EndArray().EndObject();
  exchange->SendJson(std::move(out));
}

// Live: this thread answers. Whether the model does is /ready's business.
void HandleHealth(std::unique_ptr<Exchange> exchange, Desk& /*desk*/) {
  exchange->SendJson("{\"status\":\"ok\"}");
}

void HandleReady(std::unique_ptr<Exchange> exchange, Desk& desk) {
  const Readiness readiness = desk.runner->readiness();
  const bool ready = readiness.stage == Stage::kReady && !desk.draining;
  http::Response response;
  response.status = ready ? 200 : 503;
  JsonWriter json(&response.body);
  json.Object();
  json.Key("ready").Bool(ready);
  json.Key("stage").String(desk.draining ? "draining"
                                         : NameOf(readiness.stage));
  json.Key("percent").Int(static_cast<int64_t>(100 * readiness.loaded));
  if (!readiness.canary_stage.empty()) {
    json.Key("canary_check").String(readiness.canary_stage);
  }
  json.Key("canary");
  WriteFindings(readiness, *exchange, json);
  if (readiness.stage == Stage::kFailed) {
    json.Key("code").String(ErrorIdOf(readiness.error));
    json.Key("message").String(exchange->MessageOf(readiness.error));
  }
  json.EndObject();
  if (!ready) response.headers.emplace_back("Retry-After", "1");
  exchange->Send(std::move(response));
}

void HandleMetrics(std::unique_ptr<Exchange> exchange, Desk& desk) {
  const Readiness readiness = desk.runner->readiness();
  Gauges gauges;
  gauges.engine = desk.runner->stats();
  gauges.n_connections = desk.n_connections();
  gauges.n_live = desk.runner->n_live();
  gauges.ready = readiness.stage == Stage::kReady;
  gauges.loaded = readiness.loaded;
  gauges.stalled_s = desk.runner->stalled_s();
  if (const auto model = desk.runner->info()) {
    gauges.memory_bytes = model->memory_bytes;
  }
  http::Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = desk.metrics->Text(gauges);
  exchange->Send(std::move(response));
}

}  // namespace belay::server
