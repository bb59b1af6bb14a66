// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/fingerprint.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace belay::checkpoint {
namespace {

TEST(FingerprintTest, SeesNamesSizesTimesAndEnds) {
  const std::string folder = ::testing::TempDir() + "belay_fingerprint";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/a";
  const auto time =
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  const auto print = [&](const std::string& text,
                         std::chrono::seconds later = {}) {
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    std::filesystem::last_write_time(path, time + later);
    return Fingerprint(folder).value();
  };
  const std::string text(10000, 'x');
  const uint64_t same = print(text);
  EXPECT_NE(same, 0u);
  EXPECT_EQ(print(text), same);
  EXPECT_NE(print(text + "x"), same);
  EXPECT_NE(print(text, std::chrono::seconds(1)), same);
  for (const size_t at : {size_t{0}, size_t{4095}, size_t{9999}}) {
    std::string other = text;
    other[at] = 'y';
    EXPECT_NE(print(other), same) << at;
  }
  print(text);
  EXPECT_TRUE(WriteFileAtomically(folder + "/b", "").ok());
  EXPECT_NE(Fingerprint(folder).value(), same);
  std::filesystem::remove(folder + "/b");
  EXPECT_EQ(Fingerprint(folder).value(), same);
  EXPECT_NE(Fingerprint(path).value(), 0u) << "a single file";
  std::filesystem::remove_all(folder);
  EXPECT_EQ(ErrorIdOf(Fingerprint(folder).status()), "SYS-001");
}

}  // namespace
}  // namespace belay::checkpoint
