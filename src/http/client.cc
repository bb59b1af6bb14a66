// SPDX-License-Identifier: Apache-2.0
#include "http/client.h"

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <future>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/error_ids.h"

namespace belay::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using Endpoints = std::vector<tcp::endpoint>;

Status Broken(const ErrorId& id, const std::string& where, std::string what) {
  return MakeError(
      id, {.where = where, .what = std::move(what), .expected = "", .got = ""});
}

// What the calls of one client share; all on its one thread.
struct Pool {
  Url url;
  std::string where;  // "host:port"
  Endpoints endpoints;
  asio::io_context io;
  std::vector<tcp::socket> idle;
};

class Call : public std::enable_shared_from_this<Call> {
 public:
  Call(Pool* pool, ClientRequest request, ClientCallbacks callbacks)
      : pool_(pool),
        request_(std::move(request)),
        callbacks_(std::move(callbacks)),
        socket_(pool->io),
        timer_(pool->io) {}

  // `on_end` runs last, after on_done.
  void Start(std::function<void()> on_end) {
    on_end_ = std::move(on_end);
    text_ = RequestText();
    timer_.expires_after(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double>(request_.timeout_s)));
    timer_.async_wait([self = shared_from_this()](const ErrorCode& error) {
      if (!error) self->Finish(Broken(kHttpTimeout, self->pool_->where, ""));
    });
    Connect();
  }

  void Finish(const Status& status) {
    if (std::exchange(is_done_, true)) return;
    ErrorCode error;
    timer_.cancel(error);
    if (status.ok() && keep_) {
      pool_->idle.push_back(std::move(socket_));
    } else {
      socket_.close(error);
    }
    if (callbacks_.on_done) callbacks_.on_done(status);
    on_end_();
  }

 private:
  std::string RequestText() const {
    std::string text = request_.method + " " + pool_->url.path + request_.path +
                       " HTTP/1.1\r\n";
    text += "Host: " + pool_->where + "\r\n";
    for (const auto& [name, value] : request_.headers) {
      text += name + ": " + value + "\r\n";
    }
    if (!request_.body.empty() || request_.method == "POST") {
      text +=
          "Content-Length: " + std::to_string(request_.body.size()) + "\r\n";
    }
    return text + "\r\n" + request_.body;
  }

  void Connect() {
    reused_ = !pool_->idle.empty();
    if (reused_) {
      socket_ = std::move(pool_->idle.back());
      pool_->idle.pop_back();
      return Write();
    }
    asio::async_connect(socket_, pool_->endpoints,
                        [self = shared_from_this()](const ErrorCode& error,
                                                    const tcp::endpoint&) {
                          if (self->is_done_) return;
                          if (error) return self->Lost(error);
                          ErrorCode ignored;
                          self->socket_.set_option(tcp::no_delay(true),
                                                   ignored);
                          self->Write();
                        });
  }

  void Write() {
    parser_.emplace();
    parser_->eager(true);
    parser_->body_limit(boost::none);
    in_.clear();
    head_is_out_ = false;
    if (callbacks_.on_connected) callbacks_.on_connected(reused_);
    asio::async_write(socket_, asio::buffer(text_),
                      [self = shared_from_this(), attempt = ++attempt_](
                          const ErrorCode& error, size_t) {
                        if (error && self->IsCurrent(attempt))
                          self->Lost(error);
                      });
    Read();
  }

  void Read() {
    socket_.async_read_some(asio::buffer(buffer_),
                            [self = shared_from_this(), attempt = attempt_](
                                const ErrorCode& error, size_t n_bytes) {
                              if (self->IsCurrent(attempt))
                                self->OnRead(error, n_bytes);
                            });
  }

  // False for what a connection that was given up still has to say.
  bool IsCurrent(int attempt) const { return attempt == attempt_ && !is_done_; }

  void OnRead(const ErrorCode& error, size_t n_bytes) {
    if (error) {
      ErrorCode end;
      if (error == asio::error::eof && parser_->got_some()) {
        parser_->put_eof(end);
        if (!end && parser_->is_done()) return Done();
      }
      return Lost(error);
    }
    in_.append(buffer_.data(), n_bytes);
    ErrorCode bad;
    const size_t n_used =
        parser_->put(asio::const_buffer(in_.data(), in_.size()), bad);
    in_.erase(0, n_used);
    if (bad && bad != beast::http::error::need_more) {
      return Finish(Broken(kHttpBadAnswer, pool_->where, bad.message()));
    }
    Deliver();
    if (is_done_) return;
    if (parser_->is_done()) return Done();
    Read();
  }

  void Deliver() {
    if (!parser_->is_header_done()) return;
    auto& message = parser_->get();
    if (!std::exchange(head_is_out_, true) && callbacks_.on_head) {
      Headers headers;
      for (const auto& field : message) {
        headers.emplace_back(
            std::string(field.name_string().data(), field.name_string().size()),
            std::string(field.value().data(), field.value().size()));
      }
      callbacks_.on_head(static_cast<int>(message.result_int()), headers);
    }
    if (is_done_ || message.body().empty()) return;
    const std::string piece = std::exchange(message.body(), {});
    if (callbacks_.on_data) callbacks_.on_data(piece);
  }

  void Done() {
    keep_ = parser_->keep_alive() && in_.empty();
    Finish(absl::OkStatus());
  }

  // A kept connection may have been closed by the server just now: then nothing
  // has come, and a new one is tried.
  void Lost(const ErrorCode& error) {
    if (reused_ && in_.empty() && !parser_->got_some()) {
      ErrorCode ignored;
      socket_.close(ignored);
      ++attempt_;
      socket_ = tcp::socket(pool_->io);
      pool_->idle.clear();
      return Connect();
    }
    Finish(Broken(kHttpNoConnection, pool_->where, error.message()));
  }

  Pool* const pool_;
  const ClientRequest request_;
  const ClientCallbacks callbacks_;
  std::function<void()> on_end_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  std::string text_;
  std::array<char, 16 << 10> buffer_;
  std::string in_;
  std::optional<beast::http::response_parser<beast::http::string_body>> parser_;
  int attempt_ = 0;
  bool reused_ = false;
  bool head_is_out_ = false;
  bool keep_ = false;
  bool is_done_ = false;
};

class ClientImpl final : public Client {
 public:
  explicit ClientImpl(Url url) : work_(asio::make_work_guard(pool_.io)) {
    pool_.url = std::move(url);
    pool_.where = pool_.url.host + ":" + std::to_string(pool_.url.port);
  }
  // What may throw here is a lack of memory for the handler.
  // NOLINTNEXTLINE(bugprone-exception-escape)
  ~ClientImpl() override {
    asio::post(pool_.io, [this] {
      const auto calls = calls_;
      for (const auto& [id, call] : calls) {
        call->Finish(Broken(kHttpCancelled, pool_.where, ""));
      }
      pool_.idle.clear();
      work_.reset();
    });
    if (thread_.joinable()) {
      thread_.join();
    } else {
      pool_.io.run();
    }
  }
  ClientImpl(const ClientImpl&) = delete;
  ClientImpl& operator=(const ClientImpl&) = delete;

  Status Start() {
    ErrorCode error;
    tcp::resolver resolver(pool_.io);
    const auto found =
        resolver.resolve(pool_.url.host, std::to_string(pool_.url.port), error);
    if (error) return Broken(kHttpNoConnection, pool_.where, error.message());
    for (const auto& entry : found) pool_.endpoints.push_back(entry.endpoint());
    thread_ = std::thread([this] { pool_.io.run(); });
    return absl::OkStatus();
  }

  CallId Send(ClientRequest request, ClientCallbacks callbacks) override {
    const CallId id = next_id_.fetch_add(1);
    asio::post(pool_.io, [this, id, request = std::move(request),
                          callbacks = std::move(callbacks)]() mutable {
      auto call = std::make_shared<Call>(&pool_, std::move(request),
                                         std::move(callbacks));
      calls_[id] = call;
      call->Start([this, id] { calls_.erase(id); });
    });
    return id;
  }

  void Cancel(CallId id) override {
    asio::post(pool_.io, [this, id] {
      const auto found = calls_.find(id);
      if (found == calls_.end()) return;
      const auto call = found->second;
      call->Finish(Broken(kHttpCancelled, pool_.where, ""));
    });
  }

 private:
  Pool pool_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::map<CallId, std::shared_ptr<Call>> calls_;
  std::atomic<CallId> next_id_{1};
  std::thread thread_;
};

Status BadUrl(std::string_view text, std::string what) {
  return MakeError(kHttpBadUrl, {.where = std::string(text),
                                 .what = std::move(what),
                                 .expected = "http://host[:port][/path]",
                                 .got = ""});
}

}  // namespace

StatusOr<Url> ParseUrl(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  if (!text.starts_with(kScheme)) return BadUrl(text, "");
  std::string_view rest = text.substr(kScheme.size());
  Url url;
  const size_t slash = rest.find('/');
  if (slash != std::string_view::npos) {
    url.path = rest.substr(slash);
    while (url.path.ends_with('/')) url.path.pop_back();
    rest = rest.substr(0, slash);
  }
  // [::1]:8000
  const size_t bracket = rest.starts_with('[') ? rest.find(']') : 0;
  if (bracket == std::string_view::npos) return BadUrl(text, "");
  const size_t colon = rest.find(':', bracket);
  url.host = bracket > 0 ? rest.substr(1, bracket - 1) : rest.substr(0, colon);
  if (url.host.empty()) return BadUrl(text, "no host");
  if (colon == std::string_view::npos) return url;
  const std::string_view port = rest.substr(colon + 1);
  const auto [end, error] =
      std::from_chars(port.data(), port.data() + port.size(), url.port);
  if (error != std::errc() || end != port.data() + port.size()) {
    return BadUrl(text, "port");
  }
  return url;
}

StatusOr<std::unique_ptr<Client>> Client::Create(Url url) {
  auto client = std::make_unique<ClientImpl>(std::move(url));
  BELAY_RETURN_IF_ERROR(client->Start());
  return std::unique_ptr<Client>(std::move(client));
}

StatusOr<Response> Client::Fetch(ClientRequest request) {
  std::promise<Status> done;
  Response response;
  response.content_type.clear();
  Send(std::move(request),
       {.on_connected = nullptr,
        .on_head =
            [&](int status, const Headers& headers) {
              response.status = status;
              response.headers = headers;
            },
        .on_data = [&](std::string_view piece) { response.body += piece; },
        .on_done = [&](const Status& status) { done.set_value(status); }});
  BELAY_RETURN_IF_ERROR(done.get_future().get());
  return response;
}

}  // namespace belay::http
