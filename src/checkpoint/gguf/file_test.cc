// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/gguf/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

#include "base/file.h"
#include "checkpoint/gguf/writer.h"

namespace belay::checkpoint::gguf {
namespace {

using ::testing::HasSubstr;

StatusOr<std::unique_ptr<GgufFile>> Read(const std::string& text) {
  return GgufFile::FromBytes(std::as_bytes(std::span(text.data(), text.size())),
                             "f.gguf");
}

// One tensor of each of three types, with data that counts.
HeaderBuilder SmallHeader() {
  HeaderBuilder h;
  h.AddText("general.architecture", "deepseek4");
  h.AddU32("a.count", 7);
  h.AddF32("a.scale", 1.5f);
  h.AddBool("a.flag", true);
  h.AddI32s("a.ints", std::vector<int32_t>{0, -4, 128});
  h.AddF32s("a.floats", std::vector<float>{10.0f, 0.5f});
  h.AddTexts("a.texts", std::vector<std::string>{"x", "", "yz"});
  h.AddTensor("one", {2, 3}, kTypeF32);
  h.AddTensor("two", {4, 2, 32}, kTypeQ8_0);
  h.AddTensor("three", {5}, kTypeI32);
  return h;
}

std::string SmallFile() {
  const HeaderBuilder h = SmallHeader();
  std::string text = h.Text();
  for (const uint64_t bytes : h.tensor_bytes()) {
    for (uint64_t i = 0; i < bytes; ++i) text += static_cast<char>(i + 1);
    text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
  }
  return text;
}

TEST(GgufFileTest, ReadsWhatTheWriterWrites) {
  const std::string text = SmallFile();
  const auto file = Read(text);
  ASSERT_TRUE(file.ok()) << file.status();
  const Metadata& m = (*file)->metadata();
  EXPECT_EQ((*file)->version(), 3u);
  EXPECT_EQ(m.values().size(), 7u);
  EXPECT_EQ(m.Text("general.architecture"), "deepseek4");
  EXPECT_EQ(m.Int("a.count"), 7);
  EXPECT_EQ(m.Number("a.scale"), 1.5);
  EXPECT_EQ(m.Bool("a.flag"), true);
  EXPECT_EQ(std::get<std::vector<int64_t>>(*m.Find("a.ints")),
            (std::vector<int64_t>{0, -4, 128}));
  EXPECT_EQ(std::get<std::vector<double>>(*m.Find("a.floats")),
            (std::vector<double>{10.0, 0.5}));
  EXPECT_EQ(std::get<std::vector<std::string_view>>(*m.Find("a.texts")),
            (std::vector<std::string_view>{"x", "", "yz"}));
  // A value of another kind is not there.
  EXPECT_EQ(m.Int("a.scale"), std::nullopt);
  EXPECT_EQ(m.Text("a.count"), std::nullopt);

  const auto tensors = (*file)->tensors();
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[1].name, "two");
  EXPECT_EQ(tensors[1].shape, (Shape{4, 2, 32}));
  EXPECT_EQ(tensors[1].bytes, 8u * 34);
  const auto view = ViewOf(tensors[1]);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->format, BlockFormat::kQ8_0);
  EXPECT_EQ(view->view.shape(), (Shape{8, 34}));
  for (const TensorInfo& t : tensors) {
    EXPECT_EQ(t.offset % kAlignment, 0u);
    for (uint64_t i = 0; i < t.bytes; ++i) {
      ASSERT_EQ(std::to_integer<uint8_t>(t.data[i]),
                static_cast<uint8_t>(i + 1));
    }
  }
}

TEST(GgufFileTest, EveryPrefixIsAnErrorWithAnId) {
  const std::string text = SmallFile();
  // The last tensor's padding may be missing, nothing else.
  const size_t needed = text.size() - (kAlignment - 20);
  for (size_t n = 0; n < needed; ++n) {
    const std::string prefix = text.substr(0, n);
    const auto file = Read(prefix);
    ASSERT_FALSE(file.ok()) << n;
    const std::string id = ErrorIdOf(file.status());
    ASSERT_TRUE(id == "GGUF-001" || id == "GGUF-002" || id == "CKPT-001")
        << n << ": " << file.status();
  }
  const std::string enough = text.substr(0, needed);
  EXPECT_TRUE(Read(enough).ok());
}

// `text` with `bytes` at the place of the first `at`, plus `skip`.
std::string Patch(std::string text, std::string_view at, size_t skip,
                  std::string_view bytes) {
  const size_t place = text.find(at);
  EXPECT_NE(place, std::string::npos);
  return text.replace(place + at.size() + skip, bytes.size(), bytes);
}

std::string U64(uint64_t v) {
  return std::string(reinterpret_cast<const char*>(&v), 8);
}
std::string U32(uint32_t v) {
  return std::string(reinterpret_cast<const char*>(&v), 4);
}

void ExpectError(const std::string& text, const char* id, const char* words) {
  const auto file = Read(text);
  ASSERT_FALSE(file.ok()) << words;
  EXPECT_EQ(ErrorIdOf(file.status()), id) << file.status();
  EXPECT_THAT(std::string(file.status().message()), HasSubstr(words));
}

TEST(GgufFileTest, Damages) {
  const std::string good = SmallFile();
  std::string text = good;
  text[0] = 'g';
  ExpectError(text, "GGUF-001", "GGUF");
  ExpectError(Patch(good, "GGUF", 0, U32(1)), "GGUF-001", "version");
  ExpectError(Patch(good, "GGUF", 0, U32(0x03000000)), "GGUF-001",
              "big-endian");
  ExpectError(Patch(good, "a.count", 0, U32(13)), "GGUF-002", "type");
  ExpectError(Patch(good, "a.flag", 4, "\2"), "GGUF-002", "boolean");
  ExpectError(Patch(good, "a.ints", 4, U32(9)), "GGUF-002", "array");
  ExpectError(Patch(good, "a.ints", 8, U64(uint64_t{1} << 61)), "GGUF-002",
              "longer than the file");
  ExpectError(Patch(good, "three", 0, U32(5)), "GGUF-002", "dimensions");
  ExpectError(Patch(good, "three", 4, U64(0)), "GGUF-002", "dimension");
  ExpectError(Patch(good, "three", 4, U64(~uint64_t{0})), "GGUF-002",
              "dimension");
  ExpectError(Patch(good, "two", 4, U64(33)), "GGUF-002", "multiple of 32");
  ExpectError(Patch(good, "three", 16, U64(8)), "CKPT-004", "multiple of 32");
  ExpectError(Patch(good, "three", 16, U64(32)), "CKPT-004", "overlaps");
  ExpectError(Patch(good, "three", 16, U64(uint64_t{1} << 40)), "CKPT-001",
              "three");
  ExpectError(Patch(good, "three", 16, U64(~uint64_t{31})), "CKPT-001",
              "three");
  text = good;
  text.replace(text.rfind("one"), 3, "two");
  ExpectError(text, "CKPT-012", "two");
  text = good;
  text.replace(text.find("a.scale"), 7, "a.count");
  ExpectError(text, "CKPT-012", "a.count");
}

TEST(GgufFileTest, UnreadableTypesAreRefusedByNameWhenTheyAreNeeded) {
  const std::string text = Patch(SmallFile(), "three", 12, U32(16));
  const auto file = Read(text);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto view = ViewOf((*file)->tensors()[2]);
  EXPECT_EQ(ErrorIdOf(view.status()), "GGUF-004");
  EXPECT_EQ(ErrorFactsOf(view.status()).got, "IQ2_XXS");
}

class GgufSetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(int part) const {
    return (folder_ / ("m-0000" + std::to_string(part) + "-of-00002.gguf"))
        .string();
  }

  // Part `part` (from 1) of two, whose split.no is `number`.
  void Write(int part, uint32_t number, const char* tensor) const {
    HeaderBuilder h;
    if (part == 1) h.AddText("general.architecture", "deepseek4");
    h.AddU32("split.no", number);
    h.AddU32("split.count", 2);
    h.AddU32("split.tensors.count", 2);
    h.AddTensor(tensor, {8}, kTypeF32);
    ASSERT_TRUE(
        WriteFileAtomically(Path(part), h.Text() + std::string(32, 'x')).ok());
  }

  std::string ErrorOf() const { return ErrorIdOf(OpenSet(Path(1)).status()); }

  std::filesystem::path folder_;
};

TEST_F(GgufSetTest, AllPartsFromAnyPart) {
  Write(1, 0, "a");
  EXPECT_EQ(ErrorOf(), "CKPT-011");
  Write(2, 1, "b");
  for (const int part : {1, 2}) {
    const auto set = OpenSet(Path(part));
    ASSERT_TRUE(set.ok()) << set.status();
    EXPECT_EQ(set->files.size(), 2u);
    EXPECT_TRUE(set->tensors.count("a") == 1 && set->tensors.count("b") == 1);
    EXPECT_EQ(set->metadata().Text("general.architecture"), "deepseek4");
  }
  Write(2, 1, "a");
  EXPECT_EQ(ErrorOf(), "CKPT-012");
  Write(2, 0, "b");
  EXPECT_EQ(ErrorOf(), "CKPT-010");
}

}  // namespace
}  // namespace belay::checkpoint::gguf
