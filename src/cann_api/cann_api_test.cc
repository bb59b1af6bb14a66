// SPDX-License-Identifier: Apache-2.0
// The loader, errors and the safe start, on cannsim.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>

#include "base/error_ids_cann.h"
#include "cann_api/acl_error.h"
#include "cann_api/api.h"
#include "cann_api/handles.h"
#include "cann_api/runtime.h"

namespace belay::cann_api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

LoadOptions Simulator() {
  return {.folders = {BELAY_CANNSIM "/lib64"}, .custom_libraries = {}};
}

const Api& SimApi() {
  static const std::unique_ptr<Api> api = Api::Load(Simulator()).value();
  return *api;
}

TEST(OptionsTest, FoldersComeFromTheVariablesThenTheUsualOnes) {
  const std::map<std::string, std::string> variables = {
      {"ASCEND_HOME_PATH", "/a"},
      {"ASCEND_TOOLKIT_HOME", "/b"},
      {"ASCEND_CUSTOM_OPP_PATH", "/v/one:/v/two"}};
  const LoadOptions options = OptionsFrom([&](const char* name) {
    const auto it = variables.find(name);
    return it == variables.end() ? "" : it->second;
  });
  ASSERT_GT(options.folders.size(), 2u);
  EXPECT_EQ(options.folders[0], "/a/lib64");
  EXPECT_EQ(options.folders[1], "/b/lib64");
  EXPECT_THAT(options.folders[2], StartsWith("/usr/local/Ascend"));
  EXPECT_THAT(options.custom_libraries,
              ElementsAre("/v/one/op_api/lib/libcust_opapi.so",
                          "/v/two/op_api/lib/libcust_opapi.so"));
}

TEST(ApiTest, NothingIsMissingInTheSimulator) {
  EXPECT_TRUE(SimApi().CheckRequired().ok());
  EXPECT_THAT(SimApi().Missing(), IsEmpty());
  EXPECT_TRUE(SimApi().Has("Add"));
  EXPECT_FALSE(SimApi().Has("HcPre"));  // of a custom package
  EXPECT_FALSE(SimApi().Has("NoSuchThing"));
}

TEST(ApiTest, ACustomPackageIsSearchedToo) {
  LoadOptions options = Simulator();
  options.custom_libraries = {
      "/nowhere/libcust_opapi.so",
      BELAY_CANNSIM "/opp/vendors/cannsim_A2/op_api/lib/libcust_opapi.so"};
  const auto api = Api::Load(options);
  ASSERT_TRUE(api.ok()) << api.status();
  EXPECT_TRUE((*api)->Has("HcPre"));
}

// Calling what is not there is an answer and no crash. (No CANN at all:
// tests/e2e/sim/hello_test.py, since a library stays loaded.)
TEST(ApiTest, WhatIsMissingAnswers) {
  const Api& api = SimApi();
  const Symbol<aclError(int)> absent(&api, "aclrtNoSuchFunction");
  EXPECT_FALSE(absent);
  EXPECT_EQ(absent(1), 200001);
  const Symbol<const char*()> text(&api, "aclrtNoSuchText");
  EXPECT_EQ(text(), nullptr);
}

TEST(ErrorTest, CodesHaveNamesAndIds) {
  EXPECT_EQ(NameOfCode(507046), "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT");
  EXPECT_EQ(NameOfCode(561003), "ACLNN_ERR_INNER_FIND_KERNEL_ERROR");
  EXPECT_EQ(NameOfCode(-7), "");
  const std::pair<int, const char*> ids[] = {
      {207001, kCannOutOfMemory.id}, {507046, kCannHung.id},
      {507035, kCannDeviceFault.id}, {161002, kCannRefused.id},
      {561003, kCannRefused.id},     {107001, kCannNoDevice.id},
      {100000, kCannCallFailed.id}};
  for (const auto& [code, id] : ids) {
    const Status status = StatusOf(
        SimApi(), code,
        {.call = "aclnnAdd", .device = 3, .stream = 5, .detail = "RmsNorm"});
    EXPECT_EQ(ErrorIdOf(status), id) << code;
    const ErrorFacts facts = ErrorFactsOf(status);
    EXPECT_EQ(facts.where, "device 3, stream 5, aclnnAdd (RmsNorm)");
    EXPECT_THAT(facts.got, HasSubstr(std::to_string(code)));
  }
}

TEST(RuntimeTest, StartsInTheSafeOrder) {
  std::vector<TimedStep> steps;
  auto runtime = Runtime::Start(SimApi(), {}, &steps);
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  std::vector<std::string> names;
  for (const TimedStep& step : steps) {
    EXPECT_TRUE(step.status.ok());
    names.push_back(step.name);
  }
  EXPECT_THAT(names, ElementsAre("symbols", "init", "count", "set device",
                                 "ready", "context", "stream"));
  EXPECT_EQ((*runtime)->soc(), "Ascend910B3");
  EXPECT_TRUE((*runtime)->Stop().ok());
}

TEST(RuntimeTest, AWrongDeviceIsNamed) {
  std::vector<TimedStep> steps;
  const auto runtime = Runtime::Start(SimApi(), {.device = 77}, &steps);
  EXPECT_EQ(ErrorIdOf(runtime.status()), kCannNoDevice.id);
  ASSERT_FALSE(steps.empty());
  EXPECT_EQ(steps.back().name, "count");
  EXPECT_FALSE(steps.back().status.ok());
}

// The process's runtime ends with the last user of it, and can begin again.
TEST(RuntimeTest, SeveralOneAfterAnotherAndAtOnce) {
  for (int i = 0; i < 3; ++i) {
    auto one = Runtime::Start(SimApi(), {}, nullptr);
    auto two = Runtime::Start(SimApi(), {}, nullptr);
    ASSERT_TRUE(one.ok() && two.ok());
    one->reset();
    EXPECT_TRUE((*two)->Synchronize(1000).ok());
    EXPECT_TRUE((*two)->Allocate(64).ok());
  }
}

TEST(RuntimeTest, AnotherThreadCanUseIt) {
  auto runtime = Runtime::Start(SimApi(), {}, nullptr);
  ASSERT_TRUE(runtime.ok());
  Status status = absl::UnknownError("");
  std::thread([&] {
    const auto memory = (*runtime)->Allocate(100);
    status = memory.status();
    if (status.ok()) status = (*runtime)->Synchronize(1000);
  }).join();
  EXPECT_TRUE(status.ok()) << status;
}

TEST(RuntimeTest, TooMuchMemorySaysWhatIsFree) {
  auto runtime = Runtime::Start(SimApi(), {}, nullptr);
  ASSERT_TRUE(runtime.ok());
  const auto memory = (*runtime)->Allocate(size_t{1} << 50);
  EXPECT_EQ(ErrorIdOf(memory.status()), kCannOutOfMemory.id);
  const ErrorFacts facts = ErrorFactsOf(memory.status());
  EXPECT_THAT(facts.where, HasSubstr("are free"));
  EXPECT_THAT(facts.got, HasSubstr("207001"));
}

TEST(RuntimeTest, ARefusedOperatorIsCann007) {
  auto runtime = Runtime::Start(SimApi(), {}, nullptr);
  ASSERT_TRUE(runtime.ok());
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  const Status status = (*runtime)->Check(
      SimApi().Neg.plan(nullptr, nullptr, &bytes, &executor), "aclnnNeg");
  EXPECT_EQ(ErrorIdOf(status), kCannRefused.id);
  EXPECT_THAT(ErrorFactsOf(status).what, testing::Not(IsEmpty()));
}

TEST(HandleTest, GivesBackOnceAndMoves) {
  auto runtime = Runtime::Start(SimApi(), {}, nullptr);
  ASSERT_TRUE(runtime.ok());
  DeviceMemory memory = (*runtime)->Allocate(64).value();
  void* address = memory.get();
  DeviceMemory other = std::move(memory);
  EXPECT_EQ(other.get(), address);
  EXPECT_FALSE(memory);  // NOLINT(bugprone-use-after-move): what is asked
  EXPECT_EQ(other.Reset(), 0);
  EXPECT_EQ(other.Reset(), 0);
}

}  // namespace
}  // namespace belay::cann_api
