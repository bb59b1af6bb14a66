// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>
#include <string_view>

#include "base/file.h"

namespace belay {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr size_t kMaxBytes = size_t{1} << 20;  // these files are short

std::string ReadOrEmpty(const std::string& path) {
  const StatusOr<std::string> text = ReadFile(path, kMaxBytes);
  return text.ok() ? *text : std::string();
}

// "100000 100000" or "max 100000".
double QuotaV2(const std::string& folder) {
  std::istringstream text(ReadOrEmpty(folder + "/cpu.max"));
  double quota = 0, period = 0;
  return text >> quota >> period && quota > 0 && period > 0 ? quota / period
                                                            : kNoLimit;
}

// Two files; a quota of -1 means none.
double QuotaV1(const std::string& folder) {
  std::istringstream quota_text(ReadOrEmpty(folder + "/cpu.cfs_quota_us"));
  std::istringstream period_text(ReadOrEmpty(folder + "/cpu.cfs_period_us"));
  double quota = 0, period = 0;
  return quota_text >> quota && period_text >> period && quota > 0 && period > 0
             ? quota / period
             : kNoLimit;
}

// The smallest quota of the group `path` ("/a/b") and of all groups above it.
// Inside a container the path may not exist below the mount; its parents, down
// to the mount itself, are then looked at all the same.
double SmallestQuota(const std::string& mount, std::string path,
                     double (*quota)(const std::string&)) {
  double smallest = quota(mount);
  while (!path.empty() && path != "/") {
    smallest = std::min(smallest, quota(mount + path));
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  return smallest;
}

bool HasController(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == name) return true;
    list = comma == std::string_view::npos ? "" : list.substr(comma + 1);
  }
  return false;
}

// The cores that the control groups allow. Lines of /proc/self/cgroup:
// "hierarchy:controllers:path", "0::path" for version 2.
double GroupQuota(const std::string& root) {
  double smallest = kNoLimit;
  std::istringstream groups(ReadOrEmpty(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second =
        first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string list = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    const std::string mount = root + "/sys/fs/cgroup";
    if (list.empty()) {
      smallest = std::min({smallest, SmallestQuota(mount, path, QuotaV2),
                           SmallestQuota(mount + "/unified", path, QuotaV2)});
    } else if (HasController(list, "cpu")) {
      smallest =
          std::min({smallest, SmallestQuota(mount + "/cpu", path, QuotaV1),
                    SmallestQuota(mount + "/cpu,cpuacct", path, QuotaV1)});
    }
  }
  return smallest;
}

}  // namespace

std::vector<int> AllowedCpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  // Machines with more than 1024 CPUs fail here and count as unknown.
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

int CountUsableCores(std::span<const int> cpus, const std::string& root) {
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    std::string core = root;
    core += "/sys/devices/system/cpu/cpu";
    core += std::to_string(cpu);
    // Without a list of siblings each CPU is a core of its own.
    const std::string siblings =
        ReadOrEmpty(core + "/topology/thread_siblings_list");
    cores.insert(siblings.empty() ? core : siblings);
  }
  const double usable =
      std::min(static_cast<double>(cores.size()), std::floor(GroupQuota(root)));
  return std::max(1, static_cast<int>(usable));
}

}  // namespace belay
