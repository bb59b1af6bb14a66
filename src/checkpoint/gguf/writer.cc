// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/gguf/writer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "checkpoint/gguf/types.h"

namespace belay::checkpoint::gguf {
namespace {

// Numbers of value types in the file.
constexpr uint32_t kU32 = 4;
constexpr uint32_t kI32 = 5;
constexpr uint32_t kF32 = 6;
constexpr uint32_t kBool = 7;
constexpr uint32_t kText = 8;
constexpr uint32_t kArray = 9;

template <typename T>
void Put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void PutText(std::string& out, std::string_view text) {
  Put(out, static_cast<uint64_t>(text.size()));
  out.append(text);
}

template <typename T>
void PutNumbers(std::string& out, uint32_t type, std::span<const T> values) {
  Put(out, type);
  Put(out, static_cast<uint64_t>(values.size()));
  for (const T value : values) Put(out, value);
}

uint64_t Padded(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

void HeaderBuilder::Key(std::string_view key, uint32_t type) {
  PutText(values_, key);
  Put(values_, type);
  ++n_values_;
}

void HeaderBuilder::AddU32(std::string_view key, uint32_t value) {
  Key(key, kU32);
  Put(values_, value);
}

void HeaderBuilder::AddF32(std::string_view key, float value) {
  Key(key, kF32);
  Put(values_, value);
}

void HeaderBuilder::AddBool(std::string_view key, bool value) {
  Key(key, kBool);
  Put(values_, static_cast<uint8_t>(value));
}

void HeaderBuilder::AddText(std::string_view key, std::string_view value) {
  Key(key, kText);
  PutText(values_, value);
}

void HeaderBuilder::AddI32s(std::string_view key,
                            std::span<const int32_t> values) {
  Key(key, kArray);
  PutNumbers(values_, kI32, values);
}

void HeaderBuilder::AddF32s(std::string_view key,
                            std::span<const float> values) {
  Key(key, kArray);
  PutNumbers(values_, kF32, values);
}

void HeaderBuilder::AddTexts(std::string_view key,
                             std::span<const std::string> values) {
  Key(key, kArray);
  Put(values_, kText);
  Put(values_, static_cast<uint64_t>(values.size()));
  for (const std::string& value : values) PutText(values_, value);
}

void HeaderBuilder::AddTensor(std::string_view name, const Shape& shape,
                              uint32_t type) {
  const auto element = FindType(type);
  BELAY_CHECK(element.has_value() && name.size() < 64);
  PutText(infos_, name);
  Put(infos_, static_cast<uint32_t>(shape.rank()));
  for (int i = shape.rank(); i-- > 0;) {
    Put(infos_, static_cast<uint64_t>(shape[i]));
  }
  Put(infos_, type);
  Put(infos_, offset_);
  tensor_bytes_.push_back(
      element->bytes(static_cast<uint64_t>(shape.n_elements())));
  offset_ += Padded(tensor_bytes_.back());
}

std::string HeaderBuilder::Text() const {
  std::string text = "GGUF";
  Put(text, uint32_t{3});
  Put(text, static_cast<uint64_t>(tensor_bytes_.size()));
  Put(text, n_values_);
  text += values_;
  text += infos_;
  text.resize(Padded(text.size()), '\0');
  return text;
}

StatusOr<std::unique_ptr<GgufWriter>> GgufWriter::Create(
    const std::string& path, const HeaderBuilder& header) {
  BELAY_ASSIGN_OR_RETURN(auto file, AtomicFileWriter::Create(path));
  const std::string text = header.Text();
  BELAY_RETURN_IF_ERROR(
      file->Append(std::as_bytes(std::span(text.data(), text.size()))));
  return std::unique_ptr<GgufWriter>(
      new GgufWriter(std::move(file), header.tensor_bytes()));
}

Status GgufWriter::Append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    BELAY_CHECK(tensor_ < tensor_bytes_.size());
    const uint64_t left = tensor_bytes_[tensor_] - written_;
    const auto n = static_cast<size_t>(std::min<uint64_t>(left, bytes.size()));
    BELAY_RETURN_IF_ERROR(file_->Append(bytes.first(n)));
    bytes = bytes.subspan(n);
    written_ += n;
    if (written_ < tensor_bytes_[tensor_]) return absl::OkStatus();
    const std::array<std::byte, kAlignment> zeros{};
    BELAY_RETURN_IF_ERROR(file_->Append(std::span(zeros).first(
        static_cast<size_t>(Padded(written_) - written_))));
    ++tensor_;
    written_ = 0;
  }
  return absl::OkStatus();
}

Status GgufWriter::Finish() {
  BELAY_CHECK(tensor_ == tensor_bytes_.size());
  return file_->Commit();
}

}  // namespace belay::checkpoint::gguf
