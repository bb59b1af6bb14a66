// SPDX-License-Identifier: Apache-2.0
#include "server/api/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>

#include "text/chat/json.h"

namespace belay::server {
namespace {

template <typename T>
std::string_view Digits(std::array<char, 32>& buffer, T value) {
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), static_cast<size_t>(end - buffer.data())};
}

}  // namespace

void JsonWriter::Separate() {
  if (needs_comma_) *out_ += ',';
  needs_comma_ = true;
}

JsonWriter& JsonWriter::Open(char c) {
  Separate();
  *out_ += c;
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::Close(char c) {
  *out_ += c;
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view name) {
  Separate();
  *out_ += '"';
  out_->append(name).append("\":");
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view text) {
  Separate();
  *out_ += '"';
  text::AppendJsonEscaped(text, out_);
  *out_ += '"';
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  std::array<char, 32> buffer;
  return Raw(Digits(buffer, value));
}

JsonWriter& JsonWriter::Number(double value) {
  if (!std::isfinite(value)) return Null();
  std::array<char, 32> buffer;
  return Raw(Digits(buffer, value));
}

JsonWriter& JsonWriter::Raw(std::string_view json) {
  Separate();
  out_->append(json);
  return *this;
}

}  // namespace belay::server
