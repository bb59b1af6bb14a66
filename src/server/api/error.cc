// SPDX-License-Identifier: Apache-2.0
#include "server/api/error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/error_ids.h"
#include "http/server.h"
#include "server/api/json_writer.h"
#include "text/detokenizer.h"

namespace belay::server {
namespace {

// Those whose status does not follow from their code.
constexpr std::array<std::pair<ErrorId, int>, 9> kStatuses = {
    {{kApiUnauthorized, 401},
     {kApiForbiddenOrigin, 403},
     {kApiUnknownPath, 404},
     {kApiUnknownModel, 404},
     {kApiWrongMethod, 405},
     {kApiDeadline, 504},
     {kEngQueueFull, 429},
     {kApiNotReady, 503},
     {kApiDraining, 503}}};

}  // namespace

int HttpStatusOf(const Status& error) {
  const std::string id = ErrorIdOf(error);
  if (id.starts_with("HTTP-")) return http::StatusOfError(error);
  if (id.starts_with("GRAM-")) return 400;  // the schema, whatever is wrong
  for (const auto& [known, status] : kStatuses) {
    if (id == known.id) return status;
  }
  switch (error.code()) {
    // What a request asks for and Belay cannot do is the request's error.
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
      return 400;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

const char* ErrorTypeOf(int http_status) {
  if (http_status == 401) return "authentication_error";
  if (http_status == 429) return "rate_limit_error";
  return http_status < 500 ? "invalid_request_error" : "server_error";
}

std::string ErrorWriter::Message(const Status& error, diag::Lang lang) const {
  const ErrorFacts facts = ErrorFactsOf(error);
  const diag::Entry* entry = catalogue_.Find(ErrorIdOf(error));
  if (entry == nullptr) return std::string(error.message());
  const bool zh = lang == diag::Lang::kZh;
  std::string text = facts.where;
  const auto add = [&](const std::string& part) {
    if (part.empty()) return;
    text += (text.empty() ? "" : ": ") + part;
  };
  add(entry->title.in(lang));
  add(facts.what);
  std::string brackets;
  if (!facts.expected.empty()) {
    brackets = (zh ? "应为 " : "expected ") + facts.expected;
  }
  if (!facts.got.empty()) {
    brackets += (brackets.empty() ? "" : ", ");
    brackets += (zh ? "实为 " : "got ") + facts.got;
  }
  if (!brackets.empty()) text += " (" + brackets + ")";
  text += (zh ? "。" : ". ") + entry->fix.in(lang);
  // Paths and headers may hold any bytes.
  text::Utf8Stream utf8;
  const std::string valid = utf8.Append(text);
  return valid + utf8.Finish();
}

std::string ErrorWriter::Json(const Status& error, diag::Lang lang) const {
  const ErrorFacts facts = ErrorFactsOf(error);
  std::string out;
  JsonWriter json(&out);
  json.Object().Key("error").Object();
  json.Key("message").String(Message(error, lang));
  json.Key("type").String(ErrorTypeOf(HttpStatusOf(error)));
  json.Key("param");
  const bool is_field = HttpStatusOf(error) == 400 && !facts.where.empty();
  is_field ? json.String(facts.where) : json.Null();
  const std::string id = ErrorIdOf(error);
  json.Key("code");
  id.empty() ? json.Null() : json.String(id);
  json.EndObject().EndObject();
  return out;
}

http::Response ErrorWriter::Page(const Status& error, diag::Lang lang,
                                 double retry_after_s) const {
  http::Response response;
  response.status = HttpStatusOf(error);
  response.body = Json(error, lang);
  const int status = response.status;
  if (status == 429 || status == 503) {
    const double seconds = std::clamp(std::ceil(retry_after_s), 1.0, 3600.0);
    response.headers.emplace_back("Retry-After",
                                  std::to_string(static_cast<int>(seconds)));
  }
  if (status == 401) {
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  return response;
}

}  // namespace belay::server
