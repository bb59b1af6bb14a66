// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "apps/belay/shell/cli.h"
#include "http/server.h"

namespace belay::apps {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct Result {
  int code;
  std::string out, err;
};

Result Top(std::vector<std::string> args) {
  std::ostringstream out, err;
  args.insert(args.begin(), "top");
  const int code = RunBelay(std::move(args), {.out = out, .err = err});
  return {code, out.str(), err.str()};
}

TEST(TopTest, ALineForEachLook) {
  const Result result = Top({"--json", "--count", "3", "--interval", "0.05"});
  EXPECT_EQ(result.code, 0) << result.err;
  std::istringstream lines(result.out);
  int n = 0;
  for (std::string line; std::getline(lines, line); ++n) {
    EXPECT_TRUE(json::parse(line).contains("devices"));
  }
  EXPECT_EQ(n, 3);
}

TEST(TopTest, RatesOfAServer) {
  std::atomic<int> n_asked = 0;
  const auto server = http::Server::Create(
      {}, [&](http::Request request, std::shared_ptr<http::Responder> out) {
        EXPECT_EQ(request.path, "/metrics");
        out->Send({.content_type = "text/plain",
                   .body = "belay_requests_running 2\n"
                           "belay_requests_waiting 1\n"
                           "belay_cache_pages{state=\"used\"} 99\n"
                           "belay_cache_pages{state=\"free\"} 1\n"
                           "belay_generated_tokens_total " +
                           std::to_string(1000 * ++n_asked) + "\n"});
      });
  ASSERT_TRUE(server.ok());
  const std::string url =
      "http://127.0.0.1:" + std::to_string((*server)->port());
  const Result result =
      Top({"--once", "--json", "--interval", "0.05", "--url", url});
  EXPECT_EQ(result.code, 1) << result.err;  // full caches, and a queue
  EXPECT_EQ(n_asked, 2);
  const json view = json::parse(result.out);
  EXPECT_EQ(view["engine"]["running"], 2);
  EXPECT_GT(view["engine"]["tokens_per_s"].get<double>(), 0);
  EXPECT_EQ(view["notes"][0]["id"], "HBM-006");
}

TEST(TopTest, NoServer) {
  // Nobody listens on port 1.
  const Result once = Top({"--once", "--url", "http://127.0.0.1:1"});
  EXPECT_EQ(once.code, 3);
  EXPECT_THAT(once.err, HasSubstr("HTTP-003"));
  // The live view goes on.
  const Result live =
      Top({"--count", "1", "--url", "http://127.0.0.1:1/metrics"});
  EXPECT_EQ(live.code, 0);
  EXPECT_THAT(live.out, HasSubstr("no engine"));
  EXPECT_EQ(Top({"--interval", "0"}).code, 2);
  EXPECT_EQ(Top({"--once", "--url", "x"}).code, 3);
}

}  // namespace
}  // namespace belay::apps
