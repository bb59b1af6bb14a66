// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include <gtest/gtest.h>

#include "base/error_ids.h"

namespace belay::backends {
namespace {

TEST(RegistryTest, EveryNameMakesThatBackend) {
  const auto pool = ThreadPool::Create(1);
  ASSERT_TRUE(pool.ok());
  for (const std::string_view name : Names()) {
    const auto backend = Create(name, ops::Numerics{}, pool->get());
    ASSERT_TRUE(backend.ok()) << backend.status();
    EXPECT_EQ((*backend)->name(), name);
  }
}

TEST(RegistryTest, AnUnknownNameIsRefused) {
  const auto backend = Create("tpu", ops::Numerics{}, nullptr);
  EXPECT_EQ(ErrorIdOf(backend.status()), kArgUnknownBackend.id);
}

}  // namespace
}  // namespace belay::backends
