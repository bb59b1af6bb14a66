// SPDX-License-Identifier: Apache-2.0
// Every setting of the server in one struct: what `belay serve` takes from its
// command line and configuration file.
#ifndef BELAY_SERVER_OPTIONS_H_
#define BELAY_SERVER_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace belay::server {

enum class CanaryMode : uint8_t {
  kOff,
  kOn,      // what a sound model cannot fail is refused, the rest is warned of
  kStrict,  // warnings are refused, too
};

struct ServeOptions {
  // Where it listens.
  std::string host = "127.0.0.1";
  uint16_t port = 8000;  // 0 = the kernel's choice
  int n_io_threads = 2;
  int max_connections = 4096;
  size_t max_body_bytes = size_t{16} << 20;
  double body_timeout_s = 60;  // until a request's body must be there

  // Who may ask.
  std::string api_key_file;  // "" = everybody who reaches the port
  std::string cors_origin;   // of foreign web pages; "" = none, "*" = all

  // What is answered, and how much of it at once.
  std::string model_name;        // in /v1/models; "" = the folder's name
  int32_t max_queue = 256;       // requests that may wait; more get 429
  double request_timeout_s = 0;  // deadline of each request; 0 = none
  bool thinking = false;         // for requests that do not say
  CanaryMode canary = CanaryMode::kOn;
};

}  // namespace belay::server

#endif  // BELAY_SERVER_OPTIONS_H_
