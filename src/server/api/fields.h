// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_SERVER_API_FIELDS_H_
#define BELAY_SERVER_API_FIELDS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/chat/json.h"

namespace belay::server {

// The members of one JSON object, read by name and type. The first mistake is
// kept (API-002, with the field as `where`); what is read after it means
// nothing. null is the same as absence, as in OpenAI's API.
class Fields {
 public:
  // `json` is borrowed. Not an object: API-002.
  explicit Fields(const text::JsonValue& json, std::string where = "");

  // A member, or null. It counts as known from now on.
  const text::JsonValue* Take(std::string_view name);

  std::optional<double> Number(std::string_view name, double low, double high);
  std::optional<int64_t> Integer(std::string_view name, int64_t low,
                                 int64_t high);
  std::optional<bool> Bool(std::string_view name);
  std::optional<std::string> String(std::string_view name);

  // Keeps API-002 for a field, unless there is an error already.
  void Fail(std::string_view name, std::string expected, std::string got);
  void Fail(const Status& error);

  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

  // Members that nothing has asked for, in their order.
  std::vector<std::string> Unknown() const;

  std::string Place(std::string_view name) const;

 private:
  const text::JsonValue& json_;
  const std::string where_;
  std::set<std::string, std::less<>> known_;
  Status status_;
};

// The number of a JSON value; nothing when it is none or not finite.
std::optional<double> NumberOf(const text::JsonValue& json);
// The same for whole numbers ("3" and "3.0") of 63 bits.
std::optional<int64_t> IntegerOf(const text::JsonValue& json);

}  // namespace belay::server

#endif  // BELAY_SERVER_API_FIELDS_H_
