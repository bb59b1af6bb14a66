// SPDX-License-Identifier: Apache-2.0
// One request and its answer, with what every answer needs: error pages in the
// client's language, headers for web pages, counting.
#ifndef BELAY_SERVER_CORE_EXCHANGE_H_
#define BELAY_SERVER_CORE_EXCHANGE_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "diag/lang.h"
#include "engine/environment.h"
#include "http/message.h"
#include "http/server.h"
#include "server/api/error.h"
#include "server/core/metrics.h"

namespace belay::server {

// Outlives every exchange.
struct ExchangeTools {
  const ErrorWriter* errors = nullptr;
  Metrics* metrics = nullptr;
};

class Exchange {
 public:
  Exchange(http::Request request, std::shared_ptr<http::Responder> responder,
           const ExchangeTools& tools);

  const http::Request& request() const { return request_; }
  http::Responder& responder() { return *responder_; }
  diag::Lang lang() const { return lang_; }
  engine::Clock::time_point arrival() const { return arrival_; }

  // The API key that came with the request, owned by the server's list of keys;
  // "" = none.
  std::string_view key;

  // The words of an error or note in the client's language.
  std::string MessageOf(const Status& status) const {
    return tools_.errors->Message(status, lang_);
  }

  // A header of every answer to this request.
  void AddHeader(std::string name, std::string value);
  // The path as /metrics knows it; unknown paths must not make new series.
  void SetLabel(std::string label) { label_ = std::move(label); }

  void Send(http::Response response);
  void SendJson(std::string body);
  void Fail(const Status& error, double retry_after_s = 1);
  // 200 and an event stream.
  void BeginStream();
  // Counts an error that comes inside a stream, and gives its document.
  std::string StreamError(const Status& error);

  // The body is not needed any more once it is read.
  void DropBody() { request_.body = std::string(); }

 private:
  void Finish(http::Response& response);

  http::Request request_;
  const std::shared_ptr<http::Responder> responder_;
  const ExchangeTools tools_;
  const diag::Lang lang_;
  const engine::Clock::time_point arrival_;
  http::Headers headers_;
  std::string label_ = "other";
};

}  // namespace belay::server

#endif  // BELAY_SERVER_CORE_EXCHANGE_H_
