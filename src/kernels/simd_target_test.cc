// SPDX-License-Identifier: Apache-2.0
#include "kernels/simd_target.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error_ids.h"
#include "hwy/highway.h"
#include "kernels/matmul_bf16.h"

namespace belay::kernels {
namespace {

class SimdTargetTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(UseSimdTarget("").ok()); }
};

TEST_F(SimdTargetTest, TheBestOneRunsUnlessForced) {
  ASSERT_FALSE(SimdTargets().empty());
  EXPECT_EQ(SimdTarget(), SimdTargets().front());
  const bool bf16 = HasBf16MatMul();
  for (const std::string_view name : SimdTargets()) {
    ASSERT_TRUE(UseSimdTarget(name).ok()) << name;
    EXPECT_EQ(SimdTarget(), name);
    EXPECT_EQ(HasBf16MatMul(), bf16 && name == "AVX512-BF16") << name;
    // What Highway dispatches to is what was asked for.
    if (name != "AVX512-BF16") {
      EXPECT_EQ(hwy::TargetName(hwy::SupportedTargets()), name);
    }
  }
  ASSERT_TRUE(UseSimdTarget("").ok());
  EXPECT_EQ(SimdTarget(), SimdTargets().front());
  EXPECT_EQ(HasBf16MatMul(), bf16);
}

TEST_F(SimdTargetTest, TakesNamesInAnyCase) {
  std::string name(SimdTargets().back());
  for (char& c : name) c = static_cast<char>(std::tolower(c));
  EXPECT_TRUE(UseSimdTarget(name).ok()) << name;
  EXPECT_EQ(SimdTarget(), SimdTargets().back());
}

TEST_F(SimdTargetTest, RefusesWhatIsNotThere) {
  const std::string_view before = SimdTarget();
  EXPECT_EQ(ErrorIdOf(UseSimdTarget("AVX9")), kArgUnknownSimdTarget.id);
#if HWY_ARCH_X86
  const char* elsewhere = "neon";
#else
  const char* elsewhere = "avx2";
#endif
  const Status refused = UseSimdTarget(elsewhere);
  EXPECT_EQ(ErrorIdOf(refused), kBackUnavailable.id);
  // The error says what there is.
  EXPECT_NE(ErrorFactsOf(refused).expected.find(SimdTargets().back()),
            std::string::npos);
  EXPECT_EQ(SimdTarget(), before);
}

}  // namespace
}  // namespace belay::kernels
