// SPDX-License-Identifier: Apache-2.0
// The files of this folder as part of the program; the definition is generated
// (cmake/embed_web.cmake).
#ifndef BELAY_SERVER_WEB_EMBEDDED_H_
#define BELAY_SERVER_WEB_EMBEDDED_H_

#include <span>

#include "server/web/files.h"

namespace belay::server {

std::span<const WebFile> EmbeddedWebFiles();

}  // namespace belay::server

#endif  // BELAY_SERVER_WEB_EMBEDDED_H_
