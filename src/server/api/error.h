// SPDX-License-Identifier: Apache-2.0
// Errors in OpenAI's form: {"error": {"message", "type", "param", "code"}},
// where `code` is the catalogue's id.
#ifndef BELAY_SERVER_API_ERROR_H_
#define BELAY_SERVER_API_ERROR_H_

#include <string>

#include "base/error.h"
#include "diag/catalogue.h"
#include "diag/lang.h"
#include "http/message.h"

namespace belay::server {

// The HTTP status of an error: what the client did is 4xx, the rest 5xx.
int HttpStatusOf(const Status& error);

// "invalid_request_error", "authentication_error", "rate_limit_error" or
// "server_error", by the HTTP status.
const char* ErrorTypeOf(int http_status);

class ErrorWriter {
 public:
  // Borrows the catalogue.
  explicit ErrorWriter(const diag::Catalogue& catalogue)
      : catalogue_(catalogue) {}

  // "messages[0].role: unknown role (expected ..., got ...). <what to do>"
  std::string Message(const Status& error, diag::Lang lang) const;

  // {"error": {...}}
  std::string Json(const Status& error, diag::Lang lang) const;

  // With Retry-After (whole seconds, at least 1) where trying again helps.
  http::Response Page(const Status& error, diag::Lang lang,
                      double retry_after_s = 1) const;

 private:
  const diag::Catalogue& catalogue_;
};

}  // namespace belay::server

#endif  // BELAY_SERVER_API_ERROR_H_
