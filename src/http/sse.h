// SPDX-License-Identifier: Apache-2.0
// Server-sent events (WHATWG HTML, section 9.2), both directions.
#ifndef BELAY_HTTP_SSE_H_
#define BELAY_HTTP_SSE_H_

#include <string>
#include <string_view>
#include <vector>

namespace belay::http {

// Appends one event "data: <data>\n\n". `data` has no line break.
inline void AppendSse(std::string_view data, std::string* out) {
  out->append("data: ").append(data).append("\n\n");
}

// Reads a stream of events in pieces. Only "data" fields are kept; comments,
// ids and event names are dropped. CRLF, LF and CR end a line.
class SseParser {
 public:
  // The data of each event that is complete now; lines of one event are joined
  // by "\n". Events without data are none.
  std::vector<std::string> Feed(std::string_view bytes);

  // True when an event has begun and not ended: the stream was cut.
  bool pending() const { return !line_.empty() || has_data_; }

 private:
  void EndLine(std::vector<std::string>* events);

  std::string line_;
  std::string data_;
  bool has_data_ = false;
  bool after_cr_ = false;
};

}  // namespace belay::http

#endif  // BELAY_HTTP_SSE_H_
