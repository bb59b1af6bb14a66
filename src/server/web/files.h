// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_SERVER_WEB_FILES_H_
#define BELAY_SERVER_WEB_FILES_H_

#include <string_view>

namespace belay::server {

// A file of the web page, part of the program.
struct WebFile {
  std::string_view path;  // "/", "/app.js"
  std::string_view content_type;
  std::string_view body;
};

// The file that is served at `path`, or null.
const WebFile* FindWebFile(std::string_view path);

}  // namespace belay::server

#endif  // BELAY_SERVER_WEB_FILES_H_
