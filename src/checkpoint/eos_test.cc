// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/eos.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error_ids.h"
#include "base/file.h"

namespace belay::checkpoint {
namespace {

using testing::ElementsAre;

class EosTest : public testing::Test {
 protected:
  StatusOr<std::vector<int32_t>> With(const std::string& text) {
    const std::string path = testing::TempDir() + "/generation_config.json";
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    auto ids = EosIds(testing::TempDir(), 1);
    std::remove(path.c_str());
    return ids;
  }
};

TEST_F(EosTest, TakesBothFiles) {
  EXPECT_THAT(EosIds(testing::TempDir() + "/nowhere", 1).value(),
              ElementsAre(1));
  EXPECT_THAT(With("{}").value(), ElementsAre(1));
  EXPECT_THAT(With(R"({"eos_token_id": 7})").value(), ElementsAre(1, 7));
  EXPECT_THAT(With(R"({"eos_token_id": [1, 7, 7]})").value(),
              ElementsAre(1, 7));
}

TEST_F(EosTest, SaysWhatIsWrong) {
  EXPECT_EQ(ErrorIdOf(With("{").status()), kConfMalformed.id);
  EXPECT_EQ(ErrorIdOf(With(R"({"eos_token_id": "a"})").status()),
            kConfBadValue.id);
  EXPECT_EQ(ErrorIdOf(With(R"({"eos_token_id": [-1]})").status()),
            kConfBadValue.id);
}

}  // namespace
}  // namespace belay::checkpoint
