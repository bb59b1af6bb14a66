// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/model/memory.h"

#include <fstream>
#include <string>

namespace belay::apps {

size_t AvailableBytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  size_t kib = 0;
  std::string unit;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

size_t AvailableBytes(const ops::Backend& backend) {
  const size_t bytes = backend.FreeBytes();
  return bytes > 0 ? bytes : AvailableBytes();
}

}  // namespace belay::apps
