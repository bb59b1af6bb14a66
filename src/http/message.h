// SPDX-License-Identifier: Apache-2.0
// HTTP messages as plain data.
#ifndef BELAY_HTTP_MESSAGE_H_
#define BELAY_HTTP_MESSAGE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belay::http {

// Name and value; names compare without regard to case.
using Headers = std::vector<std::pair<std::string, std::string>>;

// The first value of `name`, or "". The view lives as long as the list.
std::string_view FindHeader(const Headers& headers, std::string_view name);

// True when both are equal but for the case of ASCII letters.
bool EqualNoCase(std::string_view a, std::string_view b);

// A request whose body has arrived.
struct Request {
  std::string method = {};  // "GET"
  std::string path = {};    // without the query; as sent, no %-decoding
  std::string query = {};   // behind "?", or ""
  Headers headers = {};
  std::string body = {};
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";  // "" = no such header
  Headers headers = {};                           // beside it
  std::string body = {};
};

// "OK" for 200; "" for a status that this room does not know.
std::string_view ReasonPhrase(int status);

}  // namespace belay::http

#endif  // BELAY_HTTP_MESSAGE_H_
