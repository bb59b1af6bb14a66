// SPDX-License-Identifier: Apache-2.0
// What each path of the API does with a request.
#ifndef BELAY_SERVER_HANDLERS_H_
#define BELAY_SERVER_HANDLERS_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "server/core/exchange.h"
#include "server/core/metrics.h"
#include "server/core/runner.h"
#include "server/options.h"

namespace belay::server {

// What handlers work on. Lives as long as the service.
struct Desk {
  const ServeOptions* options = nullptr;
  Runner* runner = nullptr;
  Metrics* metrics = nullptr;
  std::function<int()> n_connections;
  std::atomic<bool> draining{false};

  // 64 random bits: ids of answers, seeds of those who give none.
  uint64_t Random();

 private:
  std::mutex mutex_;
  std::mt19937_64 random_{std::random_device{}()};
};

// Answers, or starts what will answer.
using HandlerFn = void (*)(std::unique_ptr<Exchange> exchange, Desk& desk);

struct Route {
  std::string_view method;
  std::string_view path;
  HandlerFn handle = nullptr;
  bool is_open = false;  // needs no API key
};

// Every path but those of the web page.
std::span<const Route> Routes();

// handlers_generate.cc
void HandleChat(std::unique_ptr<Exchange> exchange, Desk& desk);
void HandleCompletion(std::unique_ptr<Exchange> exchange, Desk& desk);
void HandleInfer(std::unique_ptr<Exchange> exchange, Desk& desk);

// handlers_text.cc
void HandleTokenize(std::unique_ptr<Exchange> exchange, Desk& desk);
void HandleDetokenize(std::unique_ptr<Exchange> exchange, Desk& desk);

// handlers_state.cc
void HandleModels(std::unique_ptr<Exchange> exchange, Desk& desk);
void HandleHealth(std::unique_ptr<Exchange> exchange, Desk& desk);
void HandleReady(std::unique_ptr<Exchange> exchange, Desk& desk);
void HandleMetrics(std::unique_ptr<Exchange> exchange, Desk& desk);

// The model when requests may be answered. Errors: API-010, API-013, or why the
// server will never be ready.
StatusOr<std::shared_ptr<const ModelInfo>> ReadyModel(const Desk& desk);

}  // namespace belay::server

#endif  // BELAY_SERVER_HANDLERS_H_
