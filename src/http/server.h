// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server core: keep-alive, streams, limits. It knows connections
// and bytes; what a path means is the handler's business.
//
// Sources: RFC 9110 (semantics), RFC 9112 (HTTP/1.1 framing).
#ifndef BELAY_HTTP_SERVER_H_
#define BELAY_HTTP_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http/message.h"

namespace belay::http {

// The answer to one request. All calls may come from any thread; they take
// effect in their order. What is written after the client has left is dropped.
// A responder that is destroyed unanswered closes its connection.
class Responder {
 public:
  virtual ~Responder() = default;

  // The whole answer at once.
  virtual void Send(Response response) = 0;

  // An answer in pieces: Begin, any number of Write, End. `head.body` is the
  // first piece. HTTP/1.1 clients get it chunked, HTTP/1.0 clients until the
  // connection closes.
  virtual void Begin(Response head) = 0;
  virtual void Write(std::string piece) = 0;
  virtual void End() = 0;

  // Ends a stream that cannot be ended well: closes the connection, so that the
  // client sees a cut answer instead of a whole one.
  virtual void Abort() = 0;

  // Runs `task` on the connection's own executor: one at a time with every
  // other task and callback of this connection.
  virtual void Post(std::function<void()> task) = 0;

  // `callback` runs once on the connection's executor when the client leaves
  // or is cut off before the answer has ended; at once when it already has.
  virtual void OnGone(std::function<void()> callback) = 0;

  // Bytes that were written and not yet taken by the system. Beyond
  // ServerOptions::max_unsent_bytes of a stream, the client is cut off.
  virtual size_t unsent_bytes() const = 0;

  // "127.0.0.1:50000".
  virtual const std::string& peer() const = 0;
};

// Called on an I/O thread for each whole request. It must not block for long;
// the responder may be answered later, from elsewhere.
using Handler = std::function<void(Request, std::shared_ptr<Responder>)>;

// What to answer when a request never becomes one, or may not be taken:
// HTTP-010 (malformed), 011 (header too large), 012 (body too large), 013 (too
// slow), 014 (too many connections).
using ErrorPage = std::function<Response(const Status&)>;

struct ServerOptions {
  std::string host = "127.0.0.1";  // an address or a name
  uint16_t port = 0;               // 0 = the kernel's choice
  int n_threads = 1;               // I/O threads
  int max_connections = 4096;
  size_t max_header_bytes = 16 << 10;
  size_t max_body_bytes = 16 << 20;
  size_t max_unsent_bytes = 1 << 20;  // of one stream
  // Seconds: between requests; from a request's first byte to the end of its
  // header; from there to the end of its body; without any progress of a write.
  double idle_s = 120;
  double header_s = 10;
  double body_s = 60;
  double write_s = 30;
  ErrorPage error_page = {};  // empty: status and the error's message as text
};

// HTTP status of an HTTP-01x error.
int StatusOfError(const Status& error);

class Server {
 public:
  // Listens and starts the I/O threads. HTTP-001 (address in use, not allowed,
  // no such host).
  static StatusOr<std::unique_ptr<Server>> Create(ServerOptions options,
                                                  Handler handler);
  // Closes every connection and joins the threads.
  virtual ~Server() = default;

  virtual uint16_t port() const = 0;

  // No new connections; those between two requests are closed, the others
  // after their answer.
  virtual void StopAccepting() = 0;

  virtual int n_connections() const = 0;
};

// Raises the soft limit of open files to the hard one: a connection is a file,
// and many systems start with 1,024. Returns the limit now in force.
size_t RaiseFileLimit();

}  // namespace belay::http

#endif  // BELAY_HTTP_SERVER_H_
