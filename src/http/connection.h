// SPDX-License-Identifier: Apache-2.0
// One connection of the server. Everything in it runs on its own executor;
// only Answer's calls come from other threads, and they are handed over.
#ifndef BELAY_HTTP_CONNECTION_H_
#define BELAY_HTTP_CONNECTION_H_

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error_ids.h"
#include "http/server.h"

namespace belay::http {

// What all connections of a server share; they keep it, since an answer may be
// held longer than the server lives.
struct Shared {
  ServerOptions options;
  Handler handler;
  boost::asio::io_context io;
  std::atomic<bool> draining{false};
  std::atomic<bool> stopped{false};  // nothing runs any more
  std::atomic<int> n_connections{0};
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket,
             std::shared_ptr<Shared> shared);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Start();
  // Answers HTTP-014 and closes.
  void Refuse();
  // Closes at once; `if_idle`: only between two requests.
  void Close(bool if_idle);

  const std::string& peer() const { return peer_; }
  size_t unsent_bytes() const {
    return n_unsent_.load(std::memory_order_relaxed);
  }
  auto executor() { return socket_.get_executor(); }
  bool stopped() const { return shared_->stopped; }

  // The answer to request number `serial`; calls for another are dropped.
  void Send(uint64_t serial, const Response& response);
  void Begin(uint64_t serial, Response head);
  void Write(uint64_t serial, std::string piece);
  void End(uint64_t serial);
  void Abort(uint64_t serial);
  void OnGone(uint64_t serial, std::function<void()> callback);

 private:
  using Clock = std::chrono::steady_clock;
  using ErrorCode = boost::system::error_code;
  using Parser =
      boost::beast::http::request_parser<boost::beast::http::string_body>;
  enum class Phase { kIdle, kHeader, kBody, kBusy };

  void Read();
  void OnRead(const ErrorCode& error, size_t n_bytes);
  void Parse();
  void OnHeader();
  void OnRequest();
  void Fail(const ErrorId& id, std::string what);
  void NextRequest();

  std::string HeadText(const Response& response, bool chunked) const;
  void Queue(std::string_view bytes);
  void Flush();
  void OnWritten(const ErrorCode& error, size_t n_bytes);

  void SetDeadlineOfPhase();
  void SetDeadline(double seconds);
  void ArmTimer();
  void OnDeadline();
  void Gone();

  bool IsCurrent(uint64_t serial) const {
    return serial == serial_ && phase_ == Phase::kBusy && !gone_;
  }

  const std::shared_ptr<Shared> shared_;  // first: it holds the io_context
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  std::string peer_;

  Phase phase_ = Phase::kIdle;
  uint64_t serial_ = 0;  // of the request under way
  std::optional<Parser> parser_;
  std::array<char, 16 << 10> read_buffer_;
  std::string in_;  // read and not parsed
  bool reading_ = false;

  std::string out_;      // waits
  std::string writing_;  // being written, from n_written_ on
  size_t n_written_ = 0;
  std::atomic<size_t> n_unsent_{0};
  bool close_after_ = false;  // when all is written
  bool is_head_ = false;      // the request's method
  bool is_http10_ = false;
  bool chunked_ = false;
  bool began_ = false;

  std::function<void()> on_gone_;
  bool gone_ = false;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point armed_ = Clock::time_point::max();
};

}  // namespace belay::http

#endif  // BELAY_HTTP_CONNECTION_H_
