// SPDX-License-Identifier: Apache-2.0
#include "server/service.h"

#include <array>
#include <future>
#include <utility>

#include "base/error_ids.h"
#include "diag/render.h"
#include "http/server.h"
#include "server/api/error.h"
#include "server/api/keys.h"
#include "server/handlers.h"
#include "server/web/files.h"

namespace belay::server {
namespace {

constexpr std::array<Route, 10> kRoutes = {
    {{"POST", "/v1/chat/completions", HandleChat},
     {"POST", "/v1/completions", HandleCompletion},
     {"GET", "/v1/models", HandleModels},
     {"GET", "/v1/models/*", HandleModels},
     {"POST", "/v1/tokenize", HandleTokenize},
     {"POST", "/v1/detokenize", HandleDetokenize},
     {"POST", "/infer", HandleInfer},
     {"GET", "/health", HandleHealth, /*is_open=*/true},
     {"GET", "/ready", HandleReady, /*is_open=*/true},
     {"GET", "/metrics", HandleMetrics}}};

bool Matches(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*')) return pattern == path;
  pattern.remove_suffix(1);
  return path.size() > pattern.size() && path.starts_with(pattern);
}

const Route* FindRoute(std::string_view path) {
  for (const Route& route : kRoutes) {
    if (Matches(route.path, path)) return &route;
  }
  return nullptr;
}

// 127.0.0.0/8, ::1, localhost.
bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

class ServiceImpl final : public Service {
 public:
  ServiceImpl(const ServeOptions& options, const diag::Catalogue& catalogue)
      : options_(options), errors_(catalogue) {}
  ~ServiceImpl() override {
    http_.reset();    // no more requests, and nothing runs on its threads,
    runner_.reset();  // then what they wait for
  }
  ServiceImpl(const ServiceImpl&) = delete;
  ServiceImpl& operator=(const ServiceImpl&) = delete;

  Status Open(Loader loader, const ServiceLog& log);

  uint16_t port() const override { return http_->port(); }
  Readiness readiness() const override { return runner_->readiness(); }
  void Drain() override {
    desk_.draining = true;
    http_->StopAccepting();
  }
  bool is_idle() const override {
    return runner_->n_live() == 0 && http_->n_connections() == 0;
  }

 private:
  void Handle(http::Request request,
              std::shared_ptr<http::Responder> responder);
  bool Allow(Exchange& exchange, const Route* route);
  bool AllowOrigin(Exchange& exchange);
  void Preflight(Exchange& exchange);

  const ServeOptions options_;
  const ErrorWriter errors_;
  Metrics metrics_;
  ApiKeys keys_;
  Desk desk_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<http::Server> http_;
};

Status ServiceImpl::Open(Loader loader, const ServiceLog& log) {
  if (!options_.api_key_file.empty()) {
    BELAY_ASSIGN_OR_RETURN(keys_, ApiKeys::Read(options_.api_key_file));
  }
  if (keys_.empty() && !IsLoopback(options_.host) && log.warn) {
    log.warn(MakeError(
        kSrvOpenToAll,
        {.where = options_.host, .what = "", .expected = "", .got = ""}));
  }
  desk_.options = &options_;
  desk_.metrics = &metrics_;
  http::RaiseFileLimit();
  http::ServerOptions http_options;
  http_options.host = options_.host;
  http_options.port = options_.port;
  http_options.n_threads = options_.n_io_threads;
  http_options.max_connections = options_.max_connections;
  http_options.max_body_bytes = options_.max_body_bytes;
  http_options.body_s = options_.body_timeout_s;
  http_options.error_page = [this](const Status& error) {
    http::Response page = errors_.Page(error, diag::Lang::kEn);
    metrics_.CountError(ErrorIdOf(error));
    metrics_.CountRequest("other", page.status);
    return page;
  };
  RunnerOptions runner_options;
  runner_options.max_queue = options_.max_queue;
  runner_options.canary = options_.canary;
  runner_options.log = log.line;
  runner_options.warn = log.warn;
  // The port first: when it is taken, nobody wants to wait for the model. The
  // handlers find the runner because no request is let in before it is there.
  std::promise<void> has_runner;
  const std::shared_future<void> may_start = has_runner.get_future().share();
  auto server = http::Server::Create(
      std::move(http_options),
      [this, may_start](http::Request request,
                        std::shared_ptr<http::Responder> responder) {
        may_start.wait();
        Handle(std::move(request), std::move(responder));
      });
  if (!server.ok()) {
    has_runner.set_value();
    return server.status();
  }
  http_ = std::move(*server);
  // Not http_ itself: it is null while the server ends, and requests come until
  // its threads have.
  desk_.n_connections = [http = http_.get()] { return http->n_connections(); };
  runner_ =
      std::make_unique<Runner>(std::move(runner_options), std::move(loader));
  desk_.runner = runner_.get();
  has_runner.set_value();
  return absl::OkStatus();
}

// A page of another origin may ask only when it is allowed to: whatever a user
// of this machine has open in a browser could otherwise use the server. Clients
// that are no browsers send no Origin.
bool ServiceImpl::AllowOrigin(Exchange& exchange) {
  const auto& headers = exchange.request().headers;
  const std::string origin(http::FindHeader(headers, "origin"));
  if (origin.empty()) return true;
  const std::string host(http::FindHeader(headers, "host"));
  if (origin == "http://" + host || origin == "https://" + host) return true;
  const std::string& allowed = options_.cors_origin;
  if (allowed == "*" || (!allowed.empty() && allowed == origin)) {
    exchange.AddHeader("Access-Control-Allow-Origin", allowed);
    if (allowed != "*") exchange.AddHeader("Vary", "Origin");
    exchange.AddHeader("Access-Control-Expose-Headers",
                       "X-Belay-Notes, Retry-After");
    return true;
  }
  exchange.Fail(
      MakeError(kApiForbiddenOrigin, {.where = "Origin",
                                      .what = "",
                                      .expected = "",
                                      .got = diag::EscapeControls(origin)}));
  return false;
}

void ServiceImpl::Preflight(Exchange& exchange) {
  http::Response response;
  response.status = 204;
  response.content_type.clear();
  response.headers = {{"Access-Control-Allow-Methods", "GET, POST"},
                      {"Access-Control-Allow-Headers", "*, Authorization"},
                      {"Access-Control-Max-Age", "600"}};
  exchange.Send(std::move(response));
}

bool ServiceImpl::Allow(Exchange& exchange, const Route* route) {
  if (!AllowOrigin(exchange)) return false;
  if (exchange.request().method == "OPTIONS") {
    Preflight(exchange);
    return false;
  }
  if (keys_.empty() || (route != nullptr && route->is_open)) return true;
  const int found =
      keys_.Find(http::FindHeader(exchange.request().headers, "authorization"));
  if (found >= 0) {
    exchange.key = keys_.key(found);
    return true;
  }
  exchange.Fail(MakeError(kApiUnauthorized, ErrorFacts{}));
  return false;
}

void ServiceImpl::Handle(http::Request request,
                         std::shared_ptr<http::Responder> responder) {
  auto exchange = std::make_unique<Exchange>(
      std::move(request), std::move(responder),
      ExchangeTools{.errors = &errors_, .metrics = &metrics_});
  const std::string& path = exchange->request().path;
  const std::string& method = exchange->request().method;
  // The page itself holds no secrets, and asks for the key.
  const WebFile* file = FindWebFile(path);
  if (file != nullptr && method == "GET") {
    exchange->SetLabel("/");
    http::Response response;
    response.content_type = file->content_type;
    response.headers = {{"Cache-Control", "no-cache"},
                        {"X-Content-Type-Options", "nosniff"},
                        {"Content-Security-Policy", "default-src 'self'"}};
    response.body = file->body;
    return exchange->Send(std::move(response));
  }
  const Route* route = FindRoute(path);
  if (route != nullptr) exchange->SetLabel(std::string(route->path));
  if (!Allow(*exchange, route)) return;
  if (route == nullptr) {
    return exchange->Fail(
        MakeError(kApiUnknownPath, {.where = "",
                                    .what = diag::EscapeControls(path),
                                    .expected = "",
                                    .got = ""}));
  }
  if (route->method != method) {
    exchange->AddHeader("Allow", std::string(route->method));
    return exchange->Fail(
        MakeError(kApiWrongMethod, {.where = "",
                                    .what = "",
                                    .expected = std::string(route->method),
                                    .got = diag::EscapeControls(method)}));
  }
  route->handle(std::move(exchange), desk_);
}

}  // namespace

std::span<const Route> Routes() { return kRoutes; }

StatusOr<std::unique_ptr<Service>> Service::Start(
    const ServeOptions& options, Loader loader,
    const diag::Catalogue& catalogue, const ServiceLog& log) {
  auto service = std::make_unique<ServiceImpl>(options, catalogue);
  BELAY_RETURN_IF_ERROR(service->Open(std::move(loader), log));
  return std::unique_ptr<Service>(std::move(service));
}

}  // namespace belay::server
