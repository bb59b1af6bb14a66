// SPDX-License-Identifier: Apache-2.0
#include "http/sse.h"

#include <utility>

namespace belay::http {

void SseParser::EndLine(std::vector<std::string>* events) {
  const std::string line = std::exchange(line_, {});
  if (line.empty()) {
    if (std::exchange(has_data_, false)) {
      events->push_back(std::exchange(data_, {}));
    }
    return;
  }
  const size_t colon = line.find(':');
  if (line.substr(0, colon) != "data") return;
  std::string_view value;
  if (colon != std::string::npos)
    value = std::string_view(line).substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_ += value;
  has_data_ = true;
}

std::vector<std::string> SseParser::Feed(std::string_view bytes) {
  std::vector<std::string> events;
  for (const char c : bytes) {
    const bool is_second = std::exchange(after_cr_, c == '\r') && c == '\n';
    if (is_second) continue;
    if (c == '\n' || c == '\r') {
      EndLine(&events);
    } else {
      line_ += c;
    }
  }
  return events;
}

}  // namespace belay::http
