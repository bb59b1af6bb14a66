// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include <gtest/gtest.h>

#include "base/error_ids.h"

namespace belay::backends {
namespace {

Options OnCannsim() {
  Options options;
  options.variable = [](const char* name) {
    return std::string(name) == "ASCEND_HOME_PATH" ? BELAY_CANNSIM : "";
  };
  return options;
}

TEST(RegistryTest, EveryNameMakesThatBackend) {
  const auto pool = ThreadPool::Create(1);
  ASSERT_TRUE(pool.ok());
  for (const std::string_view name : Names()) {
    const auto backend =
        Create(name, ops::Numerics{}, pool->get(), OnCannsim());
    ASSERT_TRUE(backend.ok()) << backend.status();
    EXPECT_EQ((*backend)->name(), name);
  }
}

TEST(RegistryTest, AnUnknownNameIsRefused) {
  const auto backend = Create("tpu", ops::Numerics{}, nullptr);
  EXPECT_EQ(ErrorIdOf(backend.status()), kArgUnknownBackend.id);
}

TEST(RegistryTest, HoldsCpuToATarget) {
  const auto pool = ThreadPool::Create(1);
  ASSERT_TRUE(pool.ok());
  const auto id = [&](const char* backend, const char* target) {
    const auto created =
        Create(backend, ops::Numerics{}, pool->get(), {.simd_target = target});
    return ErrorIdOf(created.status());
  };
  EXPECT_EQ(id("cpu", "mmx"), kArgUnknownSimdTarget.id);
  EXPECT_EQ(id("ref", "avx2"), kBackUnsupported.id);
  EXPECT_EQ(id("cann", "avx2"), kBackUnsupported.id);
  EXPECT_EQ(id("cpu", ""), "");
}

}  // namespace
}  // namespace belay::backends
