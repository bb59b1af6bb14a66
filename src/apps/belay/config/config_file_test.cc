// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/config/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace belay::apps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ConfigFileTest : public testing::Test {
 protected:
  void SetUp() override {
    app_.add_option("--model", model_, "checkpoint folder");
    app_.add_option("--max-batch", max_batch_, "requests at once")
        ->check(CLI::Range(1, 64));
    app_.add_option("--memory", memory_, "GiB");
    app_.add_option("--stop", stops_, "texts");
    app_.add_flag("--speculative", speculative_, "draft");
    app_.add_option("--config", config_, "this file");
  }

  void Parse(std::vector<std::string> args) {
    app_.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  }

  CLI::App app_;
  std::string model_;
  int max_batch_ = 16;
  double memory_ = 0;
  std::vector<std::string> stops_;
  bool speculative_ = false;
  std::string config_;
};

TEST_F(ConfigFileTest, SetsEveryKindOfOption) {
  Parse({});
  const Status status = ApplyConfig(
      "model = \"m\"\n[engine]\nmax-batch = 4\nmemory = 1.5\n"
      "speculative = true\nstop = [\"a\", \"b\"]\n",
      "f.toml", app_);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(model_, "m");
  EXPECT_EQ(max_batch_, 4);
  EXPECT_EQ(memory_, 1.5);
  EXPECT_TRUE(speculative_);
  EXPECT_THAT(stops_, ElementsAre("a", "b"));
}

TEST_F(ConfigFileTest, TheCommandLineWins) {
  Parse({"--max-batch", "8", "--speculative"});
  ASSERT_TRUE(
      ApplyConfig("max_batch = 4\nspeculative = false", "f", app_).ok());
  EXPECT_EQ(max_batch_, 8);
  EXPECT_TRUE(speculative_);
}

TEST_F(ConfigFileTest, FalseLeavesAFlagOff) {
  Parse({});
  ASSERT_TRUE(ApplyConfig("speculative = false", "f", app_).ok());
  EXPECT_FALSE(speculative_);
}

TEST_F(ConfigFileTest, ErrorsNameLineAndColumn) {
  struct Case {
    const char* toml;
    const char* id;
    const char* words;
  };
  for (const Case& c : {Case{"model = ", "CFG-001", "f:1:"},
                        {"\nno-such = 3", "CFG-002", "f:2:11: no-such"},
                        {"config = \"x\"", "CFG-002", "config"},
                        {"help = true", "CFG-002", "help"},
                        {"max-batch = 100", "CFG-003", "100"},
                        {"max-batch = \"many\"", "CFG-003", "many"},
                        {"speculative = 1", "CFG-003", "true or false"},
                        {"model = true", "CFG-003", "model"},
                        {"model = 1979-05-27", "CFG-003", "model"},
                        {"stop = [[1]]", "CFG-003", "stop"}}) {
    CLI::App app;
    std::string model;
    int max_batch = 1;
    bool speculative = false;
    std::vector<std::string> stops;
    std::string config;
    app.add_option("--model", model);
    app.add_option("--max-batch", max_batch)->check(CLI::Range(1, 64));
    app.add_flag("--speculative", speculative);
    app.add_option("--stop", stops);
    app.add_option("--config", config);
    app.parse(std::vector<std::string>{});
    const Status status = ApplyConfig(c.toml, "f", app);
    EXPECT_EQ(ErrorIdOf(status), c.id) << c.toml << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.words));
  }
}

TEST_F(ConfigFileTest, TheTemplateIsTomlAndHoldsEveryOption) {
  Parse({});
  const std::string text = ConfigTemplate(app_);
  for (const char* key :
       {"#model = ", "#max-batch = 16", "#speculative = false"}) {
    EXPECT_THAT(text, HasSubstr(key));
  }
  EXPECT_THAT(text, testing::Not(HasSubstr("#config")));
  // Nothing but comments; and valid once they are none.
  EXPECT_TRUE(ApplyConfig(text, "f", app_).ok());
  EXPECT_TRUE(
      ApplyConfig("max-batch = 16\nspeculative = false", "f", app_).ok());
}

}  // namespace
}  // namespace belay::apps
