// SPDX-License-Identifier: Apache-2.0
#include "server/web/files.h"

#include "server/web/embedded.h"

namespace belay::server {

const WebFile* FindWebFile(std::string_view path) {
  for (const WebFile& file : EmbeddedWebFiles()) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

}  // namespace belay::server
