// SPDX-License-Identifier: Apache-2.0
#include "engine/environment.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

namespace belay::engine {

Clock::time_point Environment::Now() const { return Clock::now(); }

int64_t Environment::AvailableBytes() const {
  const int file = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  std::array<char, 512> buffer;  // MemAvailable is the third line
  const ssize_t n = read(file, buffer.data(), buffer.size());
  close(file);
  const std::string_view text(buffer.data(),
                              n > 0 ? static_cast<size_t>(n) : 0);
  constexpr std::string_view kKey = "MemAvailable:";
  const size_t key = text.find(kKey);
  if (key == std::string_view::npos) return -1;
  const size_t digits = text.find_first_not_of(' ', key + kKey.size());
  if (digits == std::string_view::npos) return -1;
  int64_t kib = 0;
  const auto parsed =
      std::from_chars(text.data() + digits, text.data() + text.size(), kib);
  return parsed.ec == std::errc() ? kib * 1024 : -1;
}

}  // namespace belay::engine
