// SPDX-License-Identifier: Apache-2.0
#include "server/web/files.h"

#include <array>

namespace belay::server {
namespace {

constexpr std::array<WebFile, 1> kFiles = {
    {{"/", "text/plain; charset=utf-8",
      "Belay serves DeepSeek-V4 here.\n\n"
      "OpenAI clients: use this address with /v1 as base URL.\n"
      "GET /ready    how far the model is\n"
      "GET /metrics  what happens, for Prometheus\n"}}};

}  // namespace

const WebFile* FindWebFile(std::string_view path) {
  for (const WebFile& file : kFiles) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

}  // namespace belay::server
