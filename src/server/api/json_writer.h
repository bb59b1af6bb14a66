// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_SERVER_API_JSON_WRITER_H_
#define BELAY_SERVER_API_JSON_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace belay::server {

// Writes JSON straight into a string: an answer is many small documents, and a
// tree for each of them would cost more than the tokens in it. The caller keeps
// the nesting right.
class JsonWriter {
 public:
  explicit JsonWriter(std::string* out) : out_(out) {}

  JsonWriter& Object() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& Array() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(std::string_view name);
  // `text` is UTF-8.
  JsonWriter& String(std::string_view text);
  JsonWriter& Int(int64_t value);
  JsonWriter& Number(double value);  // null when it is not finite
  JsonWriter& Bool(bool value) { return Raw(value ? "true" : "false"); }
  JsonWriter& Null() { return Raw("null"); }
  JsonWriter& Raw(std::string_view json);

 private:
  JsonWriter& Open(char c);
  JsonWriter& Close(char c);
  void Separate();

  std::string* out_;
  bool needs_comma_ = false;
};

}  // namespace belay::server

#endif  // BELAY_SERVER_API_JSON_WRITER_H_
