// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error_ids.h"
#include "gtest/gtest.h"
#include "http/client.h"
#include "http/server.h"
#include "http/sse.h"

namespace belay::http {
namespace {

// Waits until `done` says true; false after some seconds.
bool WaitFor(const std::function<bool()>& done) {
  for (int i = 0; i < 2000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

// A socket without any manners.
class RawClient {
 public:
  explicit RawClient(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address),
                         sizeof(address)) == 0;
  }
  ~RawClient() { Close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }
  bool connected() const { return connected_; }
  bool Send(std::string_view text) const {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  // Reads until the text holds `mark`, or to the end.
  std::string ReadUntil(std::string_view mark) {
    std::string text = std::exchange(rest_, {});
    char buffer[4096];
    while (true) {
      const size_t at = text.find(mark);
      if (!mark.empty() && at != std::string::npos) {
        rest_ = text.substr(at + mark.size());
        return text.substr(0, at + mark.size());
      }
      const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
      if (n <= 0) return text;
      text.append(buffer, static_cast<size_t>(n));
    }
  }
  std::string ReadAll() { return ReadUntil(""); }

 private:
  int fd_;
  bool connected_ = false;
  std::string rest_;
};

// Answers by path; keeps responders of "/hold".
class HttpTest : public ::testing::Test {
 protected:
  void StartServer(ServerOptions options = {}) {
    auto server = Server::Create(
        std::move(options),
        [this](Request request, std::shared_ptr<Responder> responder) {
          Handle(std::move(request), std::move(responder));
        });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = std::move(*server);
    auto client = Client::Create({"127.0.0.1", server_->port(), ""});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = std::move(*client);
  }

  void Handle(Request request, std::shared_ptr<Responder> responder) {
    if (request.path == "/hold") {
      responder->OnGone([this] { ++n_gone_; });
      const std::lock_guard lock(mutex_);
      held_ = std::move(responder);
    } else if (request.path == "/stream") {
      responder->Begin({.content_type = "text/event-stream"});
      for (int i = 0; i < 3; ++i) {
        std::string event;
        AppendSse(std::to_string(i), &event);
        responder->Write(event);
      }
      responder->End();
    } else if (request.path == "/drop") {
      responder.reset();
    } else {
      responder->Send(
          {.content_type = "text/plain",
           .headers = {{"X-Method", request.method}},
           .body = request.path + "?" + request.query + " " + request.body});
    }
  }

  std::shared_ptr<Responder> held() {
    const std::lock_guard lock(mutex_);
    return held_;
  }

  std::mutex mutex_;
  std::shared_ptr<Responder> held_;
  std::atomic<int> n_gone_{0};
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(HttpTest, WholeAnswersOverOneConnection) {
  StartServer();
  for (int i = 0; i < 3; ++i) {
    const auto answer =
        client_->Fetch({.method = "POST", .path = "/a?b=1", .body = "hello"});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, "/a?b=1 hello");
    EXPECT_EQ(FindHeader(answer->headers, "x-method"), "POST");
  }
  EXPECT_EQ(server_->n_connections(), 1);
}

TEST_F(HttpTest, StreamsArriveInPieces) {
  StartServer();
  const auto answer = client_->Fetch({.path = "/stream"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  SseParser parser;
  EXPECT_EQ(parser.Feed(answer->body),
            (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_FALSE(parser.pending());
}

TEST_F(HttpTest, PipelinedRequestsAreAnsweredInOrder) {
  StartServer();
  RawClient raw(server_->port());
  std::string text;
  for (int i = 0; i < 50; ++i) {
    text += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  }
  ASSERT_TRUE(raw.Send(text));
  for (int i = 0; i < 50; ++i) {
    raw.ReadUntil("\r\n\r\n");
    const std::string body = "/" + std::to_string(i) + "? ";
    EXPECT_EQ(raw.ReadUntil(body), body);
  }
}

TEST_F(HttpTest, OldClientsGetUnframedStreamsAndTheEnd) {
  StartServer();
  RawClient raw(server_->port());
  ASSERT_TRUE(raw.Send("GET /stream HTTP/1.0\r\n\r\n"));
  const std::string answer = raw.ReadAll();
  EXPECT_EQ(answer.find("chunked"), std::string::npos);
  EXPECT_NE(answer.find("\r\n\r\ndata: 0\n\ndata: 1\n\ndata: 2\n\n"),
            std::string::npos)
      << answer;
}

TEST_F(HttpTest, HeadHasNoBody) {
  StartServer();
  RawClient raw(server_->port());
  ASSERT_TRUE(
      raw.Send("HEAD /abc HTTP/1.1\r\nHost: x\r\n"
               "Connection: close\r\n\r\n"));
  const std::string answer = raw.ReadAll();
  EXPECT_NE(answer.find("Content-Length: 6\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST_F(HttpTest, BodiesAreAskedForWhenTheClientWaits) {
  StartServer();
  RawClient raw(server_->port());
  ASSERT_TRUE(
      raw.Send("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
               "Expect: 100-continue\r\nConnection: close\r\n\r\n"));
  EXPECT_EQ(raw.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(raw.Send("ok"));
  EXPECT_TRUE(raw.ReadAll().ends_with("/x? ok"));
}

TEST_F(HttpTest, LimitsAreAnswered) {
  StartServer({.max_header_bytes = 1024, .max_body_bytes = 100});
  const std::pair<std::string, std::string> cases[] = {
      {"nonsense\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\nA: " + std::string(2000, 'x'), "HTTP/1.1 431 "},
      {"POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n", "HTTP/1.1 413 "},
      {"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 400 "},
      {"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked"
       "\r\n\r\n",
       "HTTP/1.1 400 "},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
       "80\r\n" +
           std::string(128, 'x') + "\r\n0\r\n\r\n",
       "HTTP/1.1 413 "}};
  for (const auto& [request, expected] : cases) {
    RawClient raw(server_->port());
    ASSERT_TRUE(raw.Send(request));
    const std::string answer = raw.ReadAll();
    EXPECT_TRUE(answer.starts_with(expected)) << request << "\n" << answer;
    EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  }
}

TEST_F(HttpTest, SlowRequestsAreCutOff) {
  StartServer({.idle_s = 0.2, .header_s = 0.2, .body_s = 0.2});
  RawClient idle(server_->port());
  RawClient header(server_->port());
  RawClient body(server_->port());
  ASSERT_TRUE(header.Send("GET / HTTP/1.1\r\nHost"));
  ASSERT_TRUE(body.Send("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx"));
  EXPECT_EQ(idle.ReadAll(), "");
  EXPECT_TRUE(header.ReadAll().starts_with("HTTP/1.1 408 "));
  EXPECT_TRUE(body.ReadAll().starts_with("HTTP/1.1 408 "));
}

TEST_F(HttpTest, LostClientsAreNoticed) {
  StartServer();
  RawClient raw(server_->port());
  ASSERT_TRUE(raw.Send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"));
  ASSERT_TRUE(WaitFor([&] { return held() != nullptr; }));
  EXPECT_EQ(n_gone_, 0);
  raw.Close();
  EXPECT_TRUE(WaitFor([&] { return n_gone_ == 1; }));
  held()->Send({.body = "too late"});
  // One who asks later is told, too.
  held()->OnGone([this] { ++n_gone_; });
  EXPECT_TRUE(WaitFor([&] { return n_gone_ == 2; }));
}

TEST_F(HttpTest, ClientsThatDoNotReadAreCutOff) {
  StartServer({.max_unsent_bytes = 1 << 20});
  RawClient raw(server_->port());
  ASSERT_TRUE(raw.Send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"));
  ASSERT_TRUE(WaitFor([&] { return held() != nullptr; }));
  held()->Begin({});
  // The system's own buffers take some megabytes.
  const bool was_cut = WaitFor([&] {
    held()->Write(std::string(100000, 'x'));
    return n_gone_ == 1;
  });
  EXPECT_TRUE(was_cut);
  EXPECT_LE(held()->unsent_bytes(), (1u << 20) + 100100);
}

TEST_F(HttpTest, UnansweredRequestsEndTheConnection) {
  StartServer();
  const auto answer = client_->Fetch({.path = "/drop"});
  EXPECT_EQ(ErrorIdOf(answer.status()), kHttpNoConnection.id);
}

TEST_F(HttpTest, TooManyConnectionsAreRefused) {
  StartServer({.max_connections = 2});
  RawClient first(server_->port());
  RawClient second(server_->port());
  ASSERT_TRUE(WaitFor([&] { return server_->n_connections() == 2; }));
  RawClient third(server_->port());
  EXPECT_TRUE(third.ReadAll().starts_with("HTTP/1.1 503 "));
}

TEST_F(HttpTest, HundredsOfIdleConnections) {
  RaiseFileLimit();
  StartServer();
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 400; ++i) {
    idle.push_back(std::make_unique<RawClient>(server_->port()));
    if (!idle.back()->connected()) break;
  }
  EXPECT_TRUE(WaitFor([&] { return server_->n_connections() == 400; }));
  const auto answer = client_->Fetch({.path = "/a"});
  EXPECT_TRUE(answer.ok()) << answer.status();
}

TEST_F(HttpTest, DrainingEndsIdleConnectionsAndFinishesOthers) {
  StartServer();
  RawClient idle(server_->port());
  RawClient busy(server_->port());
  ASSERT_TRUE(busy.Send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"));
  ASSERT_TRUE(WaitFor(
      [&] { return held() != nullptr && server_->n_connections() == 2; }));
  server_->StopAccepting();
  EXPECT_EQ(idle.ReadAll(), "");
  held()->Send({.body = "whole"});
  const std::string answer = busy.ReadAll();
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("whole")) << answer;
  EXPECT_FALSE(RawClient(server_->port()).connected());
}

TEST_F(HttpTest, StreamsThatBeganBeforeTheDrainEndTheirConnection) {
  StartServer();
  RawClient busy(server_->port());
  ASSERT_TRUE(busy.Send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"));
  ASSERT_TRUE(WaitFor([&] { return held() != nullptr; }));
  held()->Begin({});
  busy.ReadUntil("\r\n\r\n");
  server_->StopAccepting();
  held()->Write("rest");
  held()->End();
  EXPECT_EQ(busy.ReadAll(), "4\r\nrest\r\n0\r\n\r\n");
}

TEST_F(HttpTest, TheServerMayGoBeforeItsAnswers) {
  StartServer();
  client_->Send({.path = "/hold"}, {});
  ASSERT_TRUE(WaitFor([&] { return held() != nullptr; }));
  server_.reset();
  held()->Send({.body = "too late"});
}

TEST_F(HttpTest, ClientsCancelAndTimeOut) {
  StartServer();
  std::atomic<int> n_done{0};
  std::string id;
  const auto call =
      client_->Send({.path = "/hold"}, {.on_connected = nullptr,
                                        .on_head = nullptr,
                                        .on_data = nullptr,
                                        .on_done = [&](const Status& status) {
                                          id = ErrorIdOf(status);
                                          ++n_done;
                                        }});
  ASSERT_TRUE(WaitFor([&] { return held() != nullptr; }));
  client_->Cancel(call);
  ASSERT_TRUE(WaitFor([&] { return n_done == 1; }));
  EXPECT_EQ(id, kHttpCancelled.id);
  EXPECT_TRUE(WaitFor([&] { return n_gone_ == 1; }));

  const auto late = client_->Fetch({.path = "/hold", .timeout_s = 0.1});
  EXPECT_EQ(ErrorIdOf(late.status()), kHttpTimeout.id);
}

TEST_F(HttpTest, KeptConnectionsThatTheServerClosedAreReplaced) {
  StartServer({.idle_s = 0.1});
  ASSERT_TRUE(client_->Fetch({.path = "/a"}).ok());
  ASSERT_TRUE(WaitFor([&] { return server_->n_connections() == 0; }));
  const auto answer = client_->Fetch({.path = "/b"});
  EXPECT_TRUE(answer.ok()) << answer.status();
}

TEST(HttpServerTest, AddressesInUseAreRefused) {
  const auto handler = [](const Request&, const std::shared_ptr<Responder>&) {};
  const auto first = Server::Create({}, handler);
  ASSERT_TRUE(first.ok());
  const auto second = Server::Create({.port = (*first)->port()}, handler);
  EXPECT_EQ(ErrorIdOf(second.status()), kHttpCannotListen.id);
}

TEST(HttpClientTest, NobodyListens) {
  uint16_t port = 0;
  {
    const auto server = Server::Create(
        {}, [](const Request&, const std::shared_ptr<Responder>&) {});
    port = (*server)->port();
  }
  auto client = Client::Create({"127.0.0.1", port, ""});
  ASSERT_TRUE(client.ok());
  EXPECT_EQ(ErrorIdOf((*client)->Fetch({}).status()), kHttpNoConnection.id);
}

TEST(HttpUrlTest, Parts) {
  const auto url = ParseUrl("http://localhost:8080/v1/");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->host, "localhost");
  EXPECT_EQ(url->port, 8080);
  EXPECT_EQ(url->path, "/v1");
  EXPECT_EQ(ParseUrl("http://a")->port, 80);
  EXPECT_EQ(ParseUrl("http://[::1]:81")->host, "::1");
  for (const char* bad : {"https://a", "a:80", "http://", "http://a:b",
                          "http://a:99999", "http://[::1"}) {
    EXPECT_EQ(ErrorIdOf(ParseUrl(bad).status()), kHttpBadUrl.id) << bad;
  }
}

TEST(SseTest, AnyLineEndsAndCuts) {
  const std::string text =
      ": hello\r\ndata: a\r\ndata: b\r\n\r\nid: 4\n\ndata:c\n\rdata: d";
  const std::vector<std::string> expected = {"a\nb", "c"};
  for (size_t n = 1; n <= text.size(); ++n) {
    SseParser parser;
    std::vector<std::string> events;
    for (size_t at = 0; at < text.size(); at += n) {
      for (auto& event : parser.Feed(std::string_view(text).substr(at, n))) {
        events.push_back(std::move(event));
      }
    }
    EXPECT_EQ(events, expected) << n;
    EXPECT_TRUE(parser.pending());
  }
}

}  // namespace
}  // namespace belay::http
