// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>

#include "base/error_ids.h"
#include "diag/catalogue.h"
#include "gtest/gtest.h"
#include "server/api/error.h"
#include "server/api/json_writer.h"
#include "server/api/keys.h"
#include "text/chat/json.h"

namespace belay::server {
namespace {

TEST(ApiKeysTest, OnlyWholeKeysCount) {
  const auto keys = ApiKeys::Parse(
      "# ours\n\nfirst-key-0123456789\r\nsecond-key-9876543210\n", "keys");
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->Find("Bearer first-key-0123456789"), 0);
  EXPECT_EQ(keys->Find("bearer second-key-9876543210"), 1);
  for (const char* wrong :
       {"", "Bearer", "Bearer ", "first-key-0123456789",
        "Bearer first-key-012345678", "Bearer first-key-01234567890",
        "Bearer first-key-0123456789first-key-0123456789",
        "Basic first-key-0123456789", "Bearer # ours"}) {
    EXPECT_EQ(keys->Find(wrong), -1) << wrong;
  }
}

TEST(ApiKeysTest, FilesThatGuardNothingAreRefused) {
  for (const char* text :
       {"", "\n# only a comment\n", "short\n", "with blanks in it 0123456789\n",
        "schlüssel-0123456789\n"}) {
    const auto keys = ApiKeys::Parse(text, "keys");
    EXPECT_EQ(ErrorIdOf(keys.status()), kSrvBadKeyFile.id) << text;
    // Never the key itself.
    EXPECT_EQ(std::string(keys.status().message()).find("0123456789"),
              std::string::npos);
  }
}

class ErrorTest : public ::testing::Test {
 protected:
  ErrorTest()
      : catalogue_(*diag::Catalogue::LoadEmbedded()), writer_(catalogue_) {}
  diag::Catalogue catalogue_;
  ErrorWriter writer_;
};

TEST_F(ErrorTest, OpenAiForm) {
  const Status error =
      MakeError(kApiBadField,
                {.where = "n", .what = "", .expected = "1", .got = "\"\xff\n"});
  const http::Response page = writer_.Page(error, diag::Lang::kEn);
  EXPECT_EQ(page.status, 400);
  const auto json = text::ParseJson(page.body);
  ASSERT_TRUE(json.ok()) << page.body;
  const text::JsonValue* inner = json->Find("error");
  EXPECT_EQ(inner->Find("type")->text, "invalid_request_error");
  EXPECT_EQ(inner->Find("param")->text, "n");
  EXPECT_EQ(inner->Find("code")->text, "API-002");
  EXPECT_TRUE(inner->Find("message")->text.starts_with("n: "));
}

TEST_F(ErrorTest, StatusesAndWhenToTryAgain) {
  const std::pair<ErrorId, int> cases[] = {
      {kApiBadField, 400},        {kChatBadJson, 400},
      {kApiUnsupported, 400},     {kEngContextTooLong, 400},
      {kArgTokenOutOfRange, 400}, {kApiUnauthorized, 401},
      {kApiForbiddenOrigin, 403}, {kApiUnknownPath, 404},
      {kApiUnknownModel, 404},    {kApiWrongMethod, 405},
      {kEngQueueFull, 429},       {kEngNotFinite, 500},
      {kApiNotReady, 503},        {kApiDraining, 503},
      {kApiDeadline, 504},        {kHttpMalformedRequest, 400},
      {kHttpTooSlow, 408},        {kHttpBodyTooLarge, 413},
      {kHttpHeaderTooLarge, 431}, {kHttpTooManyConnections, 503}};
  for (const auto& [id, status] : cases) {
    const http::Response page =
        writer_.Page(MakeError(id, ErrorFacts{}), diag::Lang::kZh, 2.5);
    EXPECT_EQ(page.status, status) << id.id;
    const bool again = status == 429 || status == 503;
    EXPECT_EQ(http::FindHeader(page.headers, "retry-after"), again ? "3" : "")
        << id.id;
    EXPECT_TRUE(text::ParseJson(page.body).ok()) << page.body;
    EXPECT_FALSE(http::ReasonPhrase(status).empty()) << status;
  }
}

TEST(JsonWriterTest, CommasAndNumbers) {
  std::string out;
  JsonWriter json(&out);
  json.Object().Key("a").Array().Int(-1).Number(0.5).Null().EndArray();
  json.Key("b").Object().EndObject().Key("c").String("\"\n");
  json.Key("d").Bool(true).Key("e").Number(1.0 / 0.0).Raw("[]").EndObject();
  EXPECT_EQ(out,
            "{\"a\":[-1,0.5,null],\"b\":{},\"c\":\"\\\"\\n\",\"d\":true,"
            "\"e\":null,[]}");
}

}  // namespace
}  // namespace belay::server
