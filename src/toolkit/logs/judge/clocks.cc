// SPDX-License-Identifier: Apache-2.0
#include "toolkit/logs/judge/clocks.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

namespace belay::logs {
namespace {

constexpr int64_t kSecond = 1000000;
constexpr int kMinCommon = 5;

int64_t Median(std::vector<int64_t>& values) {
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Half of the values are at most so far from `center`.
int64_t Spread(std::vector<int64_t> values, int64_t center) {
  for (int64_t& value : values) {
    value = value > center ? value - center : center - value;
  }
  return Median(values);
}

}  // namespace

std::vector<ClockOffset> FindClockOffsets(std::span<const FileFacts> files) {
  std::vector<ClockOffset> offsets(files.size());
  // Where some times lack the year, they cannot be compared with the others.
  const bool has_years =
      std::any_of(files.begin(), files.end(), [](const FileFacts& file) {
        return file.first_time && file.first_time->has_year;
      });
  std::map<uint64_t, std::vector<std::pair<size_t, int64_t>>> lines;
  for (size_t f = 0; f < files.size(); ++f) {
    if (!files[f].first_time || files[f].first_time->has_year != has_years) {
      continue;
    }
    for (const Anchor& anchor : files[f].anchors) {
      lines[anchor.key].emplace_back(f, anchor.us);
    }
  }
  std::vector<std::vector<int64_t>> late(files.size());  // against the middle
  for (auto& [key, seen] : lines) {
    if (seen.size() < 2) continue;
    std::vector<int64_t> times;
    times.reserve(seen.size());
    for (const auto& [file, us] : seen) times.push_back(us);
    const int64_t middle = Median(times);
    for (const auto& [file, us] : seen) late[file].push_back(us - middle);
  }
  for (size_t f = 0; f < files.size(); ++f) {
    if (late[f].size() < kMinCommon) continue;
    const int64_t offset = Median(late[f]);
    if (std::abs(offset) < 2 * kSecond || Spread(late[f], offset) > kSecond) {
      continue;
    }
    offsets[f] = {offset, static_cast<int>(late[f].size())};
  }
  return offsets;
}

}  // namespace belay::logs
