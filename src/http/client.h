// SPDX-License-Identifier: Apache-2.0
// A small HTTP/1.1 client: many requests at once on one thread, answers in
// pieces as they come, connections kept and used again.
#ifndef BELAY_HTTP_CLIENT_H_
#define BELAY_HTTP_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http/message.h"

namespace belay::http {

// "http://host:port/base" in parts.
struct Url {
  std::string host = {};
  uint16_t port = 80;
  std::string path = {};  // "" or "/base", without a slash at the end
};

// HTTP-002 for anything but http://host[:port][/path] (https is not spoken:
// put a proxy before it).
StatusOr<Url> ParseUrl(std::string_view text);

struct ClientRequest {
  std::string method = "GET";
  std::string path = "/";  // behind the URL's own
  Headers headers = {};    // beside Host, Content-Length, Connection
  std::string body = {};
  double timeout_s = 600;  // from Send() to the end of the answer
};

// What happens to one request, in this order, all on the client's thread.
// on_done comes exactly once, whatever happens: OK, HTTP-003 (no connection, or
// it broke), HTTP-004 (the answer is no HTTP), HTTP-005 (timeout), HTTP-006
// (Cancel). Empty functions are not called.
struct ClientCallbacks {
  // The connection is there and the request is about to be written; `reused`:
  // it was open before.
  std::function<void(bool reused)> on_connected = {};
  std::function<void(int status, const Headers& headers)> on_head = {};
  std::function<void(std::string_view piece)> on_data = {};  // of the body
  std::function<void(const Status& status)> on_done = {};
};

class Client {
 public:
  using CallId = uint64_t;

  // Resolves the host. HTTP-003.
  static StatusOr<std::unique_ptr<Client>> Create(Url url);
  // Ends what is under way (HTTP-006) and joins the thread.
  virtual ~Client() = default;

  // Starts a request; may be called from any thread, callbacks included. Each
  // request that is under way has a connection of its own.
  virtual CallId Send(ClientRequest request, ClientCallbacks callbacks) = 0;

  // Closes the connection of a request that is under way; its on_done follows.
  virtual void Cancel(CallId id) = 0;

  // Sends and waits for the whole answer. Not from a callback.
  StatusOr<Response> Fetch(ClientRequest request);
};

}  // namespace belay::http

#endif  // BELAY_HTTP_CLIENT_H_
