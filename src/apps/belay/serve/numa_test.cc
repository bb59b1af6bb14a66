// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <thread>

#include "apps/belay/serve/serve.h"

namespace belay::apps {
namespace {

using testing::HasSubstr;

// Each on a thread of its own, which alone is bound then.
StatusOr<std::string> Bind(const std::string& numa) {
  StatusOr<std::string> bound;
  std::thread([&] {
    std::ostringstream out, err;
    const diag::Catalogue catalogue;
    const Context context{.out = out,
                          .err = err,
                          .catalogue = catalogue,
                          .out_style = {},
                          .err_style = {},
                          .command = nullptr};
    ServeArgs args;
    args.numa = numa;
    bound = BindServer(args, context);
  }).join();
  return bound;
}

TEST(NumaTest, Choices) {
  EXPECT_EQ(Bind("off").value(), "");
  EXPECT_THAT(Bind("auto").value(), HasSubstr("NUMA: not bound"));
  for (const char* wrong : {"", "x", "-1", "1x", "99999"}) {
    EXPECT_EQ(ErrorIdOf(Bind(wrong).status()), "ARG-001") << wrong;
  }
}

}  // namespace
}  // namespace belay::apps
