// SPDX-License-Identifier: Apache-2.0
#include "http/server.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "http/connection.h"

namespace belay::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;

Status CannotListen(const ServerOptions& options, const ErrorCode& error) {
  return MakeError(kHttpCannotListen,
                   {.where = options.host + ":" + std::to_string(options.port),
                    .what = error.message(),
                    .expected = "",
                    .got = ""});
}

class ServerImpl final : public Server {
 public:
  ServerImpl(ServerOptions options, Handler handler)
      : shared_(std::make_shared<Shared>()),
        acceptor_(asio::make_strand(shared_->io)),
        retry_(acceptor_.get_executor()) {
    shared_->options = std::move(options);
    shared_->handler = std::move(handler);
  }
  ~ServerImpl() override { Stop(); }
  ServerImpl(const ServerImpl&) = delete;
  ServerImpl& operator=(const ServerImpl&) = delete;

  Status Listen();
  void Start();

  uint16_t port() const override { return port_; }
  void StopAccepting() override;
  int n_connections() const override { return shared_->n_connections; }

 private:
  void Accept();
  void OnAccepted(const ErrorCode& error, tcp::socket socket);
  void Stop();
  void CloseAll(bool only_idle);

  const std::shared_ptr<Shared> shared_;
  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  uint16_t port_ = 0;
  // Touched on the acceptor's executor only.
  std::vector<std::weak_ptr<Connection>> connections_;
  size_t next_sweep_ = 64;
  std::vector<std::thread> threads_;
};

Status ServerImpl::Listen() {
  const ServerOptions& options = shared_->options;
  ErrorCode error;
  tcp::resolver resolver(shared_->io);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port),
                       tcp::resolver::passive, error);
  if (error || found.empty()) return CannotListen(options, error);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error)
    acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) return CannotListen(options, error);
  port_ = acceptor_.local_endpoint(error).port();
  return absl::OkStatus();
}

void ServerImpl::Start() {
  Accept();
  for (int i = 0; i < std::max(1, shared_->options.n_threads); ++i) {
    threads_.emplace_back([this] {
      pthread_setname_np(pthread_self(), "belay-http");
      shared_->io.run();
    });
  }
}

// The handler runs on the acceptor's executor, the socket gets its own.
void ServerImpl::Accept() {
  acceptor_.async_accept(asio::make_strand(shared_->io),
                         [this](const ErrorCode& error, tcp::socket socket) {
                           OnAccepted(error, std::move(socket));
                         });
}

void ServerImpl::OnAccepted(const ErrorCode& error, tcp::socket socket) {
  if (!acceptor_.is_open()) return;
  if (error) {
    // Out of files, most likely: some will be closed soon.
    retry_.expires_after(std::chrono::milliseconds(100));
    retry_.async_wait([this](const ErrorCode& e) {
      if (!e && acceptor_.is_open()) Accept();
    });
    return;
  }
  auto connection = std::make_shared<Connection>(std::move(socket), shared_);
  const bool is_full =
      shared_->n_connections > shared_->options.max_connections;
  connections_.push_back(connection);
  if (connections_.size() >= next_sweep_) {
    std::erase_if(connections_, [](const auto& c) { return c.expired(); });
    next_sweep_ = 64 + 2 * connections_.size();
  }
  asio::dispatch(connection->executor(), [connection, is_full] {
    is_full ? connection->Refuse() : connection->Start();
  });
  Accept();
}

void ServerImpl::CloseAll(bool only_idle) {
  for (const auto& weak : connections_) {
    if (const auto connection = weak.lock()) {
      asio::post(connection->executor(),
                 [connection, only_idle] { connection->Close(only_idle); });
    }
  }
}

void ServerImpl::StopAccepting() {
  shared_->draining = true;
  asio::post(acceptor_.get_executor(), [this] {
    ErrorCode error;
    acceptor_.close(error);
    CloseAll(/*only_idle=*/true);
  });
}

void ServerImpl::Stop() {
  if (threads_.empty()) return;
  asio::post(acceptor_.get_executor(), [this] {
    ErrorCode error;
    acceptor_.close(error);
    retry_.cancel(error);
    CloseAll(/*only_idle=*/false);
  });
  // Without open sockets and timers run() ends by itself; a responder that
  // someone still holds does not keep the threads.
  for (std::thread& thread : threads_) thread.join();
  shared_->stopped = true;
  shared_->handler = nullptr;
}

}  // namespace

int StatusOfError(const Status& error) {
  const std::string id = ErrorIdOf(error);
  if (id == kHttpHeaderTooLarge.id) return 431;
  if (id == kHttpBodyTooLarge.id) return 413;
  if (id == kHttpTooSlow.id) return 408;
  if (id == kHttpTooManyConnections.id) return 503;
  return 400;
}

StatusOr<std::unique_ptr<Server>> Server::Create(ServerOptions options,
                                                 Handler handler) {
  auto server =
      std::make_unique<ServerImpl>(std::move(options), std::move(handler));
  BELAY_RETURN_IF_ERROR(server->Listen());
  server->Start();
  return std::unique_ptr<Server>(std::move(server));
}

size_t RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit raised{limit.rlim_max, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return raised.rlim_cur;
  }
  return limit.rlim_cur;
}

}  // namespace belay::http
