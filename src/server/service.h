// SPDX-License-Identifier: Apache-2.0
// The server as a whole: ports, paths, the engine's thread.
#ifndef BELAY_SERVER_SERVICE_H_
#define BELAY_SERVER_SERVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "diag/catalogue.h"
#include "server/core/model.h"
#include "server/core/runner.h"
#include "server/options.h"

namespace belay::server {

// Where the server says what happens to it; from any thread.
struct ServiceLog {
  std::function<void(const std::string&)> line;
  std::function<void(const Status&)> warn;
};

class Service {
 public:
  // Opens the port, then loads the model in the background. `catalogue` is
  // borrowed. Errors: HTTP-001, SYS-001 and SRV-002 (the file of keys).
  static StatusOr<std::unique_ptr<Service>> Start(
      const ServeOptions& options, Loader loader,
      const diag::Catalogue& catalogue, const ServiceLog& log);
  // Ends everything at once.
  virtual ~Service() = default;

  virtual uint16_t port() const = 0;
  virtual Readiness readiness() const = 0;

  // Takes no new requests; those under way are finished. is_idle() tells when.
  virtual void Drain() = 0;
  virtual bool is_idle() const = 0;
};

}  // namespace belay::server

#endif  // BELAY_SERVER_SERVICE_H_
