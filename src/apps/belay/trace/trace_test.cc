// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/trace/trace.h"

#include <gtest/gtest.h>

#include <memory>

#include "backends/registry.h"
#include "base/error_ids.h"
#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"

namespace belay::trace {
namespace {

TEST(TraceTest, StopsWhenAskedTo) {
  const auto checkpoint = checkpoint::Checkpoint::Open("data/demo");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto pool = ThreadPool::Create(1);
  ASSERT_TRUE(pool.ok());
  const auto backend =
      backends::Create("cpu", ops::Numerics{}, pool->get()).value();
  const auto weights =
      model::BindWeights((*checkpoint)->config(), spec::Rank{},
                         [&](std::string_view name) {
                           return (*checkpoint)->Slice(name, spec::Rank{});
                         },
                         *backend);
  ASSERT_TRUE(weights.ok()) << weights.status();
  ops::SingleRank communicator;

  TraceOptions options;
  options.prompt = {0, 1, 2};
  options.n_decode = 1000;
  int32_t last = -1;
  options.keep_going = [&](int32_t n_decoded) {
    last = n_decoded;
    return n_decoded < 2;
  };
  const auto result = RunTrace({&(*checkpoint)->config(),
                                weights->get(),
                                backend.get(),
                                &communicator,
                                {}},
                               options);
  EXPECT_EQ(ErrorIdOf(result.status()), kSysInterrupted.id);
  EXPECT_EQ(last, 2);
}

}  // namespace
}  // namespace belay::trace
