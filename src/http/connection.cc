// SPDX-License-Identifier: Apache-2.0
#include "http/connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>
#include <charconv>
#include <utility>

namespace belay::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;

// A client that pipelines gets its next requests held back up to here.
constexpr size_t kMaxPipelined = 64 << 10;

// How long a client may take to close after the last answer.
constexpr double kLinger_s = 2;

std::string ToString(beast::string_view text) {
  return {text.data(), text.size()};
}

const ErrorId& IdOf(const boost::system::error_code& error) {
  using E = beast::http::error;
  if (error == E::header_limit) return kHttpHeaderTooLarge;
  if (error == E::body_limit) return kHttpBodyTooLarge;
  return kHttpMalformedRequest;
}

class Answer final : public Responder {
 public:
  Answer(std::shared_ptr<Connection> connection, uint64_t serial)
      : connection_(std::move(connection)), serial_(serial) {}
  ~Answer() override {
    if (!ended_) Abort();
  }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  void Send(Response response) override {
    ended_ = true;
    Do([response = std::move(response), serial = serial_](Connection& c) {
      c.Send(serial, response);
    });
  }
  void Begin(Response head) override {
    Do([head = std::move(head), serial = serial_](Connection& c) mutable {
      c.Begin(serial, std::move(head));
    });
  }
  void Write(std::string piece) override {
    Do([piece = std::move(piece), serial = serial_](Connection& c) mutable {
      c.Write(serial, std::move(piece));
    });
  }
  void End() override {
    ended_ = true;
    Do([serial = serial_](Connection& c) { c.End(serial); });
  }
  void Abort() override {
    ended_ = true;
    Do([serial = serial_](Connection& c) { c.Abort(serial); });
  }
  void Post(std::function<void()> task) override {
    if (connection_->stopped()) return;
    asio::post(connection_->executor(), std::move(task));
  }
  void OnGone(std::function<void()> callback) override {
    Do([callback = std::move(callback), serial = serial_](
           Connection& c) mutable { c.OnGone(serial, std::move(callback)); });
  }
  size_t unsent_bytes() const override { return connection_->unsent_bytes(); }
  const std::string& peer() const override { return connection_->peer(); }

 private:
  // Runs at once when this is the connection's own executor.
  template <typename F>
  void Do(F&& call) {
    if (connection_->stopped()) return;
    asio::dispatch(
        connection_->executor(),
        [connection = connection_, call = std::forward<F>(call)]() mutable {
          call(*connection);
        });
  }

  const std::shared_ptr<Connection> connection_;
  const uint64_t serial_;
  std::atomic<bool> ended_{false};
};

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket,
                       std::shared_ptr<Shared> shared)
    : shared_(std::move(shared)),
      socket_(std::move(socket)),
      timer_(socket_.get_executor()) {
  ErrorCode error;
  const auto endpoint = socket_.remote_endpoint(error);
  if (!error) {
    peer_ = endpoint.address().to_string(error) + ":" +
            std::to_string(endpoint.port());
  }
  // Tokens are small and must not wait for each other.
  socket_.set_option(asio::ip::tcp::no_delay(true), error);
  ++shared_->n_connections;
}

Connection::~Connection() { --shared_->n_connections; }

void Connection::Start() {
  NextRequest();
  Read();
}

void Connection::Refuse() {
  phase_ = Phase::kBusy;
  Fail(kHttpTooManyConnections, "");
}

void Connection::Close(bool if_idle) {
  if (if_idle &&
      (phase_ != Phase::kIdle || !out_.empty() || !writing_.empty())) {
    return;
  }
  Gone();
}

// The read is always pending, also while an answer is made: its end of file is
// how a lost client is noticed.
void Connection::Read() {
  if (reading_ || gone_ || in_.size() > kMaxPipelined) return;
  reading_ = true;
  socket_.async_read_some(
      asio::buffer(read_buffer_),
      [self = shared_from_this()](const ErrorCode& error, size_t n_bytes) {
        self->OnRead(error, n_bytes);
      });
}

void Connection::OnRead(const ErrorCode& error, size_t n_bytes) {
  reading_ = false;
  if (gone_) return;
  if (error) {
    // What was answered and is on its way still goes out.
    if (close_after_ && !writing_.empty()) return;
    return Gone();
  }
  // What comes behind the last request is read and thrown away: closing with
  // unread bytes would reset the connection, and the answer with it.
  if (close_after_ && phase_ != Phase::kBusy) return Read();
  in_.append(read_buffer_.data(), n_bytes);
  Parse();
  Read();
}

void Connection::Parse() {
  if (phase_ == Phase::kBusy || gone_ || close_after_ || in_.empty()) return;
  if (phase_ == Phase::kIdle) {
    phase_ = Phase::kHeader;
    SetDeadline(shared_->options.header_s);
  }
  ErrorCode error;
  const size_t n_used =
      parser_->put(asio::const_buffer(in_.data(), in_.size()), error);
  in_.erase(0, n_used);
  if (error && error != beast::http::error::need_more) {
    return Fail(IdOf(error), error.message());
  }
  if (phase_ == Phase::kHeader && parser_->is_header_done()) OnHeader();
  if (!gone_ && parser_->is_done()) OnRequest();
}

void Connection::OnHeader() {
  phase_ = Phase::kBody;
  SetDeadline(shared_->options.body_s);
  const auto& message = parser_->get();
  is_http10_ = message.version() < 11;
  if (parser_->is_done()) return;
  // RFC 9110 10.1.1: the client waits for leave to send the body.
  if (EqualNoCase(ToString(message[beast::http::field::expect]),
                  "100-continue")) {
    Queue("HTTP/1.1 100 Continue\r\n\r\n");
    Flush();
  }
}

void Connection::OnRequest() {
  phase_ = Phase::kBusy;
  SetDeadline(0);
  ++serial_;
  auto message = parser_->release();
  is_head_ = message.method() == beast::http::verb::head;
  close_after_ = !message.keep_alive();
  Request request;
  request.method = is_head_ ? "GET" : ToString(message.method_string());
  const std::string target = ToString(message.target());
  const size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  if (mark != std::string::npos) request.query = target.substr(mark + 1);
  for (const auto& field : message) {
    request.headers.emplace_back(ToString(field.name_string()),
                                 ToString(field.value()));
  }
  request.body = std::move(message.body());
  shared_->handler(std::move(request),
                   std::make_shared<Answer>(shared_from_this(), serial_));
}

// No request, so no request's answer: one page, then the end.
void Connection::Fail(const ErrorId& id, std::string what) {
  const Status status = MakeError(
      id, {.where = peer_, .what = std::move(what), .expected = "", .got = ""});
  Response response;
  if (shared_->options.error_page) {
    response = shared_->options.error_page(status);
  } else {
    response.status = StatusOfError(status);
    response.content_type = "text/plain";
    response.body = std::string(status.message()) + "\n";
  }
  is_head_ = false;
  phase_ = Phase::kBusy;
  ++serial_;
  close_after_ = true;
  Send(serial_, response);
}

void Connection::NextRequest() {
  phase_ = Phase::kIdle;
  began_ = false;
  if (close_after_) return;
  parser_.emplace();
  parser_->eager(true);
  parser_->header_limit(
      static_cast<std::uint32_t>(shared_->options.max_header_bytes));
  parser_->body_limit(shared_->options.max_body_bytes);
  SetDeadline(shared_->options.idle_s);
}

std::string Connection::HeadText(const Response& response, bool chunked) const {
  std::string head = is_http10_ ? "HTTP/1.0 " : "HTTP/1.1 ";
  head += std::to_string(response.status) + " " +
          std::string(ReasonPhrase(response.status)) + "\r\n";
  if (!response.content_type.empty()) {
    head += "Content-Type: " + response.content_type + "\r\n";
  }
  for (const auto& [name, value] : response.headers) {
    head += name + ": " + value + "\r\n";
  }
  if (chunked) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (!began_ && response.status != 204 && response.status != 304) {
    head += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  }
  // HTTP/1.0 clients must be told that the connection stays.
  if (close_after_) {
    head += "Connection: close\r\n";
  } else if (is_http10_) {
    head += "Connection: keep-alive\r\n";
  }
  return head + "\r\n";
}

void Connection::Send(uint64_t serial, const Response& response) {
  if (!IsCurrent(serial)) return;
  close_after_ |= shared_->draining;
  Queue(HeadText(response, /*chunked=*/false));
  if (!is_head_) Queue(response.body);
  End(serial);
}

void Connection::Begin(uint64_t serial, Response head) {
  if (!IsCurrent(serial)) return;
  began_ = true;
  chunked_ = !is_http10_;
  close_after_ |= shared_->draining || is_http10_;
  Queue(HeadText(head, chunked_));
  if (!head.body.empty()) Write(serial, std::move(head.body));
  Flush();
}

void Connection::Write(uint64_t serial, std::string piece) {
  if (!IsCurrent(serial) || !began_ || is_head_ || piece.empty()) return;
  if (unsent_bytes() + piece.size() > shared_->options.max_unsent_bytes) {
    return Gone();  // it does not read: memory is for those who do
  }
  if (chunked_) {
    std::array<char, 18> size;
    char* end =
        std::to_chars(size.data(), size.data() + 16, piece.size(), 16).ptr;
    *end++ = '\r';
    *end++ = '\n';
    Queue({size.data(), static_cast<size_t>(end - size.data())});
    piece += "\r\n";
  }
  Queue(piece);
  Flush();
}

void Connection::End(uint64_t serial) {
  if (!IsCurrent(serial)) return;
  if (began_ && chunked_ && !is_head_) Queue("0\r\n\r\n");
  close_after_ |= shared_->draining;  // a stream may have begun before
  on_gone_ = nullptr;
  NextRequest();
  Flush();
  // Not from here: this may be the handler of the request itself, and a client
  // that pipelines would make it deep.
  asio::post(executor(), [self = shared_from_this()] {
    self->Parse();
    self->Read();
  });
}

void Connection::Abort(uint64_t serial) {
  if (IsCurrent(serial)) Gone();
}

void Connection::OnGone(uint64_t serial, std::function<void()> callback) {
  if (IsCurrent(serial)) {
    on_gone_ = std::move(callback);
  } else if (gone_ && serial == serial_) {
    asio::post(executor(), std::move(callback));
  }
}

void Connection::Queue(std::string_view bytes) {
  out_.append(bytes);
  n_unsent_.fetch_add(bytes.size(), std::memory_order_relaxed);
}

void Connection::Flush() {
  if (gone_ || !writing_.empty()) return;
  if (out_.empty()) {
    if (phase_ == Phase::kBusy || !close_after_) return;
    ErrorCode error;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, error);
    SetDeadline(kLinger_s);
    return;
  }
  std::swap(out_, writing_);
  n_written_ = 0;
  OnWritten({}, 0);
}

void Connection::OnWritten(const ErrorCode& error, size_t n_bytes) {
  if (gone_) return;
  if (error) return Gone();
  n_written_ += n_bytes;
  n_unsent_.fetch_sub(n_bytes, std::memory_order_relaxed);
  if (n_written_ == writing_.size()) {
    writing_.clear();
    SetDeadlineOfPhase();
    return Flush();
  }
  SetDeadline(shared_->options.write_s);
  socket_.async_write_some(
      asio::buffer(writing_.data() + n_written_, writing_.size() - n_written_),
      [self = shared_from_this()](const ErrorCode& e, size_t n) {
        self->OnWritten(e, n);
      });
}

void Connection::SetDeadlineOfPhase() {
  switch (phase_) {
    case Phase::kIdle:
      return SetDeadline(shared_->options.idle_s);
    case Phase::kHeader:
      return SetDeadline(shared_->options.header_s);
    case Phase::kBody:
      return SetDeadline(shared_->options.body_s);
    case Phase::kBusy:  // the handler decides how long it takes
      return SetDeadline(0);
  }
}

// 0 = none. A timer that is armed for earlier is left alone: it fires, sees the
// new deadline and goes on, which is cheaper than one timer a token.
void Connection::SetDeadline(double seconds) {
  if (seconds <= 0) {
    deadline_ = Clock::time_point::max();
    return;
  }
  deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(seconds));
  if (deadline_ < armed_) ArmTimer();
}

void Connection::ArmTimer() {
  armed_ = deadline_;
  timer_.expires_at(armed_);
  timer_.async_wait([self = shared_from_this()](const ErrorCode& error) {
    if (!error) self->OnDeadline();
  });
}

void Connection::OnDeadline() {
  armed_ = Clock::time_point::max();
  if (gone_ || deadline_ == Clock::time_point::max()) return;
  if (Clock::now() < deadline_) return ArmTimer();
  const bool is_receiving =
      (phase_ == Phase::kHeader || phase_ == Phase::kBody) && !close_after_;
  if (is_receiving) return Fail(kHttpTooSlow, "");
  Gone();
}

void Connection::Gone() {
  if (std::exchange(gone_, true)) return;
  ErrorCode error;
  socket_.close(error);
  timer_.cancel(error);
  if (on_gone_) asio::post(executor(), std::exchange(on_gone_, nullptr));
}

}  // namespace belay::http
