// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/pack/pack_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error_ids.h"
#include "spec/presets.h"

namespace belay::checkpoint {
namespace {

class PackFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() +
            ::testing::UnitTest::GetInstance()->current_test_info()->name() +
            ".belay";
    for (size_t i = 0; i < plain_.size(); ++i) plain_[i] = 0.5f * i;
    for (size_t i = 0; i < packed_.size(); ++i) {
      packed_[i] = static_cast<std::byte>(i * 37);
    }
    const auto config = spec::PresetConfig("golden");
    ASSERT_TRUE(config.ok());
    auto writer = PackWriter::Create(path_, "layout x", *config, 1234);
    ASSERT_TRUE(writer.ok()) << writer.status();
    const ConstTensorView plain(plain_.data(), DType::kF32, {3, 4});
    ASSERT_TRUE((*writer)->Add("plain", plain, nullptr).ok());
    // Two of its four columns: a view with gaps is written without them.
    const ConstTensorView gaps(plain_.data(), DType::kF32, {3, 2},
                               4 * sizeof(float));
    ASSERT_TRUE((*writer)->Add("gaps", gaps, nullptr).ok());
    StoredView packed =
        ConstTensorView(packed_.data(), DType::kF8E4M3, {1000, 2000});
    packed.packed = packed_;
    ASSERT_TRUE((*writer)->Add("packed", packed, nullptr).ok());
    const auto bytes = (*writer)->Finish();
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(*bytes, std::filesystem::file_size(path_));
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string OpenId() const {
    return ErrorIdOf(PackFile::Open(path_).status());
  }
  std::string Text() const { return ReadFile(path_).value(); }
  void Write(const std::string& text) const {
    ASSERT_TRUE(WriteFileAtomically(path_, text).ok());
  }

  std::string path_;
  std::vector<float> plain_ = std::vector<float>(12);
  std::vector<std::byte> packed_ = std::vector<std::byte>(3 << 20 | 5);
};

TEST_F(PackFileTest, GivesBackWhatWasWritten) {
  const auto file = PackFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->layout(), "layout x");
  EXPECT_EQ((*file)->weight_bytes(), 1234u);
  EXPECT_EQ((*file)->n_tensors(), 3u);
  EXPECT_EQ((*file)->config().n_layers, spec::PresetConfig("golden")->n_layers);

  const StoredView plain = (*file)->Find("plain");
  ASSERT_TRUE(plain.view.shape() == Shape({3, 4}));
  EXPECT_TRUE(plain.packed.empty());
  EXPECT_EQ(std::memcmp(plain.view.data(), plain_.data(), 48), 0);
  const StoredView gaps = (*file)->Find("gaps");
  EXPECT_TRUE(gaps.view.is_contiguous());
  EXPECT_EQ(gaps.view.row<float>(2)[1], plain_[9]);
  const StoredView packed = (*file)->Find("packed");
  EXPECT_EQ(packed.view.dtype(), DType::kF8E4M3);
  EXPECT_TRUE(packed.view.shape() == Shape({1000, 2000}));
  ASSERT_EQ(packed.packed.size(), packed_.size());
  EXPECT_EQ(std::memcmp(packed.packed.data(), packed_.data(), packed_.size()),
            0);
  EXPECT_TRUE((*file)->Find("other").empty());

  EXPECT_TRUE((*file)->Verify(nullptr).ok());
  const auto pool = ThreadPool::Create(2);
  EXPECT_TRUE((*file)->Verify(pool->get()).ok());
}

TEST_F(PackFileTest, RefusesAFileThatIsCutOff) {
  const std::string whole = Text();
  for (const size_t n :
       {whole.size() - 1, whole.size() - 39, whole.size() - 4096, size_t{8192},
        size_t{4096}, size_t{12}}) {
    Write(whole.substr(0, n));
    EXPECT_EQ(OpenId(), kPackDamaged.id) << n;
  }
  Write(whole + " ");
  EXPECT_EQ(OpenId(), kPackDamaged.id);
  for (const size_t n : {size_t{11}, size_t{0}}) {
    Write(whole.substr(0, n));
    EXPECT_NE(OpenId(), "") << n;
  }
}

// Any byte of the header and of what leads to it.
TEST_F(PackFileTest, RefusesAChangedHeader) {
  const std::string whole = Text();
  uint64_t header_at = 0;
  std::memcpy(&header_at, whole.data() + whole.size() - 40, 8);
  for (size_t at = header_at; at < whole.size(); at += 3) {
    std::string text = whole;
    text[at] = static_cast<char>(text[at] ^ 4);
    Write(text);
    ASSERT_EQ(OpenId(), kPackDamaged.id) << at;
  }
}

TEST_F(PackFileTest, RefusesAnotherFormOrVersion) {
  std::string text = Text();
  ++text[8];
  Write(text);
  EXPECT_EQ(OpenId(), kPackNotPack.id);
  text[8] = static_cast<char>(kPackVersion);
  text[0] = 'b';
  Write(text);
  EXPECT_EQ(OpenId(), kPackNotPack.id);
}

TEST_F(PackFileTest, VerifyFindsChangedData) {
  std::string text = Text();
  // The packed tensor's pieces: its start, its second MiB, its last byte.
  for (const size_t at : {size_t{3} * 4096, size_t{3} * 4096 + (1 << 20) + 7,
                          size_t{3} * 4096 + packed_.size() - 1}) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    Write(changed);
    const auto file = PackFile::Open(path_);
    ASSERT_TRUE(file.ok()) << file.status();
    const Status found = (*file)->Verify(nullptr);
    EXPECT_EQ(ErrorIdOf(found), kPackDamaged.id) << at;
    EXPECT_EQ(ErrorFactsOf(found).what, "packed");
  }
}

}  // namespace
}  // namespace belay::checkpoint
