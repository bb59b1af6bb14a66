// SPDX-License-Identifier: Apache-2.0
#include "server/core/exchange.h"

#include <utility>

namespace belay::server {
namespace {

diag::Lang LangOf(const http::Request& request) {
  return http::FindHeader(request.headers, "accept-language").starts_with("zh")
             ? diag::Lang::kZh
             : diag::Lang::kEn;
}

}  // namespace

Exchange::Exchange(http::Request request,
                   std::shared_ptr<http::Responder> responder,
                   const ExchangeTools& tools)
    : request_(std::move(request)),
      responder_(std::move(responder)),
      tools_(tools),
      lang_(LangOf(request_)),
      arrival_(engine::Clock::now()) {}

void Exchange::AddHeader(std::string name, std::string value) {
  headers_.emplace_back(std::move(name), std::move(value));
}

void Exchange::Finish(http::Response& response) {
  response.headers.insert(response.headers.end(), headers_.begin(),
                          headers_.end());
  tools_.metrics->CountRequest(label_, response.status);
}

void Exchange::Send(http::Response response) {
  Finish(response);
  responder_->Send(std::move(response));
}

void Exchange::SendJson(std::string body) {
  http::Response response;
  response.body = std::move(body);
  Send(std::move(response));
}

void Exchange::Fail(const Status& error, double retry_after_s) {
  tools_.metrics->CountError(ErrorIdOf(error));
  Send(tools_.errors->Page(error, lang_, retry_after_s));
}

void Exchange::BeginStream() {
  http::Response response;
  response.content_type = "text/event-stream; charset=utf-8";
  response.headers = {{"Cache-Control", "no-cache"},
                      {"X-Accel-Buffering", "no"}};  // nginx holds it otherwise
  Finish(response);
  responder_->Begin(std::move(response));
}

std::string Exchange::StreamError(const Status& error) {
  tools_.metrics->CountError(ErrorIdOf(error));
  return tools_.errors->Json(error, lang_);
}

}  // namespace belay::server
