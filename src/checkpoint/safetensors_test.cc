// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/error_ids.h"
#include "base/random.h"

namespace belay::checkpoint {
namespace {

using ::testing::HasSubstr;

// A file from its parts: any length field, header and number of data bytes.
struct Bytes {
  std::vector<std::byte> data;

  Bytes(const std::string& header, size_t data_bytes, int64_t length = -1) {
    uint64_t n = length < 0 ? header.size() : static_cast<uint64_t>(length);
    for (int i = 0; i < 8; ++i) {
      data.push_back(static_cast<std::byte>(n & 0xff));
      n >>= 8;
    }
    for (const char c : header) data.push_back(static_cast<std::byte>(c));
    for (size_t i = 0; i < data_bytes; ++i) {
      data.push_back(static_cast<std::byte>(i));
    }
  }
};

Status OpenStatus(const Bytes& bytes) {
  return SafetensorsFile::FromBytes(bytes.data, "m.safetensors").status();
}

std::string IdOf(const std::string& header, size_t data_bytes,
                 int64_t length = -1) {
  return ErrorIdOf(OpenStatus(Bytes(header, data_bytes, length)));
}

std::string Entry(const std::string& name, const std::string& dtype,
                  const std::string& shape, const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

class SafetensorsFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("belay_safetensors_" +
               std::to_string(reinterpret_cast<uintptr_t>(this)));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) {
    return (folder_ / name).string();
  }

  std::filesystem::path folder_;
};

TEST(SafetensorsTest, ReadsViewsWithoutCopying) {
  const Bytes bytes("{\"__metadata__\":{\"format\":\"pt\"}," +
                        Entry("b", "BF16", "[2,3]", "[8,20]") + "," +
                        Entry("a", "F32", "[2]", "[0,8]") + "," +
                        Entry("none", "I64", "[0,4]", "[20,20]") + "}   ",
                    20);
  const auto file = SafetensorsFile::FromBytes(bytes.data, "m");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ((*file)->tensors().size(), 3u);
  EXPECT_EQ((*file)->tensors()[0].name, "a");
  const auto b = (*file)->Get("b");
  ASSERT_TRUE(b.ok());
  EXPECT_EQ(b->dtype(), DType::kBF16);
  EXPECT_EQ(b->shape(), (Shape{2, 3}));
  const std::byte expected[] = {std::byte{8}, std::byte{9}};
  EXPECT_EQ(std::memcmp(b->data(), expected, 2), 0);
  EXPECT_EQ((*file)->metadata().at("format"), "pt");
  EXPECT_EQ((*file)->Find("c"), nullptr);
  EXPECT_EQ(ErrorIdOf((*file)->Get("c").status()), "CKPT-007");
}

TEST(SafetensorsTest, MisalignedTensorsAreCopiedToAlignedMemory) {
  // An odd header length puts every F32 on an odd address.
  std::string header = "{" + Entry("a", "F32", "[2]", "[0,8]") + "}";
  if (header.size() % 2 == 0) header += ' ';
  const Bytes bytes(header, 8);
  const auto file = SafetensorsFile::FromBytes(bytes.data, "m");
  ASSERT_TRUE(file.ok()) << file.status();
  const ConstTensorView view = (*file)->tensors()[0].view;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data()) % 4, 0u);
  EXPECT_EQ(std::memcmp(view.data(), bytes.data.data() + 8 + header.size(), 8),
            0);
}

TEST(SafetensorsTest, TruncatedFile) {
  const std::string header = "{" + Entry("a", "F32", "[2]", "[0,8]") + "}";
  EXPECT_EQ(IdOf(header, 7), "CKPT-001");
  EXPECT_EQ(IdOf(header, 0), "CKPT-001");
  Bytes bytes(header, 8);
  bytes.data.resize(5);
  EXPECT_EQ(ErrorIdOf(OpenStatus(bytes)), "CKPT-001");
  bytes.data.clear();
  EXPECT_EQ(ErrorIdOf(OpenStatus(bytes)), "CKPT-001");
}

TEST(SafetensorsTest, HeaderLongerThanTheFile) {
  EXPECT_EQ(IdOf("{}", 0, 3), "CKPT-002");
  EXPECT_EQ(IdOf("{}", 0, INT64_MAX), "CKPT-002");
  Bytes bytes("{}", 0);
  for (int i = 0; i < 8; ++i)
    bytes.data[static_cast<size_t>(i)] = std::byte{255};
  EXPECT_EQ(ErrorIdOf(OpenStatus(bytes)), "CKPT-002");
}

TEST(SafetensorsTest, MalformedHeaders) {
  const std::string headers[] = {
      "",
      "[]",
      " {}",
      "{",
      "{]",
      "{}{}",
      "{\"a\":1}",
      "{\"a\":[1]}",
      "{\"a\":{}}",
      "{\"a\":null}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}",
      "{\"a\":{\"dtype\":5,\"shape\":[],\"data_offsets\":[0,4]}}",
      "{\"a\":{\"dtype\":{\"x\":1},\"shape\":[],\"data_offsets\":[0,4]}}",
      "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[],"
      "\"data_offsets\":[0,4]}}",
      "{\"a\":{\"dtype\":\"F32\",\"extra\":1,\"shape\":[],\"data_offsets\":[0,"
      "4]}}",
      "{" + Entry("a", "F32", "[1.0]", "[0,4]") + "}",
      "{" + Entry("a", "F32", "[-1]", "[0,4]") + "}",
      "{" + Entry("a", "F32", "[\"1\"]", "[0,4]") + "}",
      "{" + Entry("a", "F32", "[[1]]", "[0,4]") + "}",
      "{" + Entry("a", "F32", "[18446744073709551616]", "[0,4]") + "}",
      "{" + Entry("a", "F32", "[9223372036854775808]", "[0,4]") + "}",
      "{" + Entry("a", "F32", "[1,1,1,1,1,1]", "[0,4]") + "}",
      "{" + Entry("a", "F32", "[1]", "[0]") + "}",
      "{" + Entry("a", "F32", "[1]", "[0,4,4]") + "}",
      "{" + Entry("a", "F32", "1", "[0,4]") + "}",
      "{\"__metadata__\":{\"a\":1}}",
      "{\"__metadata__\":\"a\"}",
      "{\"\xff\":1}",
  };
  for (const std::string& header : headers) {
    EXPECT_EQ(IdOf(header, 4), "CKPT-003") << header;
  }
  std::string deep = "{\"a\":";
  for (int i = 0; i < 1000000; ++i) deep += '[';
  EXPECT_EQ(IdOf(deep, 4), "CKPT-003");
}

TEST(SafetensorsTest, AnUnknownDtypeIsNamed) {
  const Status status =
      OpenStatus(Bytes("{" + Entry("w", "F4_E9", "[1]", "[0,4]") + "}", 4));
  EXPECT_EQ(ErrorIdOf(status), "CKPT-003");
  EXPECT_EQ(ErrorFactsOf(status).got, "F4_E9");
  EXPECT_THAT(ErrorFactsOf(status).where, HasSubstr("m.safetensors"));
  EXPECT_THAT(ErrorFactsOf(status).where, HasSubstr("w"));
}

TEST(SafetensorsTest, BadOffsets) {
  const auto two = [](const std::string& a, const std::string& b) {
    return IdOf("{" + Entry("a", "F32", "[1]", a) + "," +
                    Entry("b", "F32", "[1]", b) + "}",
                8);
  };
  EXPECT_EQ(two("[0,4]", "[4,8]"), "");
  EXPECT_EQ(two("[4,8]", "[0,4]"), "");          // any order in the header
  EXPECT_EQ(two("[0,4]", "[2,6]"), "CKPT-004");  // overlap
  EXPECT_EQ(two("[0,4]", "[0,4]"), "CKPT-004");
  EXPECT_EQ(two("[0,4]", "[5,9]"), "CKPT-004");  // hole
  EXPECT_EQ(two("[1,5]", "[5,9]"), "CKPT-004");  // hole at the start
  EXPECT_EQ(two("[0,4]", "[4,9]"), "CKPT-004");  // too long for its shape
  EXPECT_EQ(two("[0,4]", "[8,4]"), "CKPT-004");  // ends before it begins
  EXPECT_EQ(two("[0,4]", "[18446744073709551612,0]"), "CKPT-004");
  EXPECT_EQ(two("[0,4]", "[9223372036854775800,9223372036854775804]"),
            "CKPT-004");
  // Bytes after the last tensor.
  EXPECT_EQ(IdOf("{" + Entry("a", "F32", "[1]", "[0,4]") + "}", 5), "CKPT-004");
  EXPECT_EQ(IdOf("{}", 1), "CKPT-004");
}

TEST(SafetensorsTest, SizesThatOverflow) {
  // 2^32 * 2^32 * 4 = 2^66 wraps to 0.
  EXPECT_EQ(
      IdOf("{" + Entry("a", "F32", "[4294967296,4294967296]", "[0,0]") + "}",
           0),
      "CKPT-004");
  EXPECT_EQ(
      IdOf("{" + Entry("a", "U8", "[9223372036854775807,2,0]", "[0,0]") + "}",
           0),
      "CKPT-004");
}

TEST(SafetensorsTest, DuplicateNames) {
  EXPECT_EQ(IdOf("{" + Entry("a", "F32", "[1]", "[0,4]") + "," +
                     Entry("a", "F32", "[1]", "[4,8]") + "}",
                 8),
            "CKPT-012");
}

TEST_F(SafetensorsFileTest, WritesWhatItReads) {
  std::vector<float> f32(6);
  std::iota(f32.begin(), f32.end(), 1.0f);
  std::vector<uint8_t> u8(5 * 8);
  std::iota(u8.begin(), u8.end(), uint8_t{0});
  const ConstTensorView wide(u8.data(), DType::kU8, Shape{5, 3}, 8);  // strided
  const NamedView views[] = {
      {"w.\"quoted\"", wide},
      {"z", ConstTensorView(f32.data(), DType::kF32, Shape{2, 3})},
      {"scalar", ConstTensorView(f32.data() + 5, DType::kF32, Shape{})}};
  ASSERT_TRUE(
      WriteSafetensors(Path("a.safetensors"), views, {{"format", "pt"}}).ok());
  const auto file = SafetensorsFile::Open(Path("a.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->tensors()[0].offset % 8, 0u);
  EXPECT_EQ((*file)->Get("scalar")->as<float>()[0], 6.0f);
  EXPECT_EQ((*file)->Get("z")->as<float>()[3], 4.0f);
  const auto w = (*file)->Get("w.\"quoted\"");
  ASSERT_TRUE(w.ok());
  EXPECT_EQ(w->row<uint8_t>(4)[2], 34);
  EXPECT_EQ((*file)->metadata().at("format"), "pt");
  EXPECT_EQ((*file)->file_bytes(),
            SafetensorsFileBytes({{"z", DType::kF32, Shape{2, 3}},
                                  {"scalar", DType::kF32, Shape{}},
                                  {"w.\"quoted\"", DType::kU8, Shape{5, 3}}},
                                 {{"format", "pt"}}));
}

TEST_F(SafetensorsFileTest, TheOrderOfTheSpecsDoesNotChangeTheFile) {
  const std::vector<TensorSpec> specs = {{"b", DType::kU8, Shape{3}},
                                         {"a", DType::kBF16, Shape{2}},
                                         {"c", DType::kI64, Shape{1}}};
  const std::vector<std::byte> data(3 + 4 + 8);
  std::string texts[2];
  for (int i = 0; i < 2; ++i) {
    auto order = specs;
    if (i == 1) std::swap(order[0], order[2]);
    auto writer = SafetensorsWriter::Create(Path("x"), order);
    ASSERT_TRUE(writer.ok());
    EXPECT_EQ((*writer)->specs()[0].name, "c");
    // In two pieces that cut through a tensor.
    ASSERT_TRUE((*writer)->Append(std::span(data).first(9)).ok());
    EXPECT_FALSE(std::filesystem::exists(Path("x")));
    ASSERT_TRUE((*writer)->Append(std::span(data).subspan(9)).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
    const auto text = ReadFile(Path("x"));
    ASSERT_TRUE(text.ok());
    texts[i] = *text;
    std::filesystem::remove(Path("x"));
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST_F(SafetensorsFileTest, WriterRefusesDuplicatesAndUnwritablePaths) {
  const std::vector<TensorSpec> twice = {{"a", DType::kU8, Shape{1}},
                                         {"a", DType::kF32, Shape{1}}};
  EXPECT_EQ(ErrorIdOf(SafetensorsWriter::Create(Path("x"), twice).status()),
            "CKPT-012");
  EXPECT_EQ(
      ErrorIdOf(SafetensorsWriter::Create(Path("no/such/x"), {}).status()),
      "SYS-002");
  EXPECT_EQ(ErrorIdOf(SafetensorsFile::Open(Path("missing")).status()),
            "SYS-001");
}

// Any damage gives an error or views that lie inside the bytes.
TEST(SafetensorsTest, DamagedBytesNeverLeaveTheFile) {
  const Bytes good("{" + Entry("a", "F32", "[2]", "[0,8]") + "," +
                       Entry("bb", "BF16", "[2,2]", "[8,16]") + "}",
                   16);
  for (uint64_t round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes = good.data;
    const uint64_t flips = 1 + RandomBits(1, round) % 4;
    for (uint64_t f = 0; f < flips; ++f) {
      const uint64_t bits = RandomBits(2 + f, round);
      bytes[bits % bytes.size()] = static_cast<std::byte>(bits >> 32);
    }
    if (round % 3 == 0) bytes.resize(RandomBits(9, round) % bytes.size());
    const auto file = SafetensorsFile::FromBytes(bytes, "m");
    if (!file.ok()) {
      ASSERT_THAT(ErrorIdOf(file.status()), HasSubstr("CKPT-")) << round;
      continue;
    }
    for (const StoredTensor& tensor : (*file)->tensors()) {
      ASSERT_LE(tensor.offset + tensor.view.bytes(), bytes.size());
    }
  }
}

}  // namespace
}  // namespace belay::checkpoint
