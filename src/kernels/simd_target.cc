// SPDX-License-Identifier: Apache-2.0
#include "kernels/simd_target.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error_ids.h"
#include "hwy/highway.h"

namespace belay::kernels {
namespace {

struct Target {
  std::string_view name;
  int64_t hwy = 0;  // 0: the best of Highway's
  bool raw = false;
};

// All that this build has, best first.
#if HWY_ARCH_X86
constexpr Target kTargets[] = {{"AVX512-BF16", 0, true},
                               {"AVX3_DL", HWY_AVX3_DL, false},
                               {"AVX3", HWY_AVX3, false},
                               {"AVX2", HWY_AVX2, false},
                               {"SSE4", HWY_SSE4, false}};
#else
constexpr Target kTargets[] = {{"NEON", HWY_NEON, false}};
#endif

constexpr std::string_view kAllNames[] = {"AVX512-BF16", "AVX3_DL", "AVX3",
                                          "AVX2",        "SSE4",    "NEON"};

// Index into kTargets of the one in force; -1 is the best. An atomic, so that
// reading it beside a change is no data race.
std::atomic<int> forced{-1};

bool CpuHasAvx512Bf16() {
#if HWY_ARCH_X86
  return __builtin_cpu_supports("avx512bf16") != 0 &&
         __builtin_cpu_supports("avx512vbmi") != 0 &&
         __builtin_cpu_supports("avx512vnni") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0;
#else
  return false;
#endif
}

// What the CPU has, whatever is forced: asked once, before the first force.
int64_t CpuTargets() {
  static const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets;
}

bool Available(const Target& target) {
  if (target.raw) return CpuHasAvx512Bf16();
  return (CpuTargets() & target.hwy) != 0;
}

const Target& Best() {
  return *std::find_if(std::begin(kTargets), std::end(kTargets), Available);
}

bool SameName(std::string_view a, std::string_view b) {
  const auto plain = [](char c) {
    return c == '-' ? '_' : std::toupper(static_cast<unsigned char>(c));
  };
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [&](char x, char y) { return plain(x) == plain(y); });
}

std::string Listed(std::span<const std::string_view> names) {
  std::string list;
  for (const std::string_view name : names) {
    list += (list.empty() ? "" : " | ") + std::string(name);
  }
  return list;
}

}  // namespace

std::vector<std::string_view> SimdTargets() {
  std::vector<std::string_view> names;
  for (const Target& target : kTargets) {
    if (Available(target)) names.push_back(target.name);
  }
  return names;
}

Status UseSimdTarget(std::string_view name) {
  int index = -1;
  int64_t mask = 0;  // 0 takes the force away
  if (!name.empty()) {
    const auto* target =
        std::find_if(std::begin(kTargets), std::end(kTargets),
                     [&](const Target& t) { return SameName(t.name, name); });
    if (target == std::end(kTargets) || !Available(*target)) {
      const bool known =
          std::any_of(std::begin(kAllNames), std::end(kAllNames),
                      [&](std::string_view n) { return SameName(n, name); });
      return MakeError(known ? kBackUnavailable : kArgUnknownSimdTarget,
                       {.where = "--simd-target",
                        .what = "",
                        .expected = Listed(SimdTargets()),
                        .got = std::string(name)});
    }
    index = static_cast<int>(target - std::begin(kTargets));
    mask = target->hwy;
  }
  (void)CpuTargets();
  forced.store(index);
  hwy::SetSupportedTargetsForTest(mask);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return absl::OkStatus();
}

std::string_view SimdTarget() {
  const int index = forced.load();
  return index < 0 ? Best().name : kTargets[index].name;
}

bool Avx512Bf16Allowed() {
  const int index = forced.load();
  return (index < 0 || kTargets[index].raw) && CpuHasAvx512Bf16();
}

}  // namespace belay::kernels
