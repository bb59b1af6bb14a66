// SPDX-License-Identifier: Apache-2.0
#include "toolkit/doctor/facts/version.h"

#include <algorithm>

namespace belay::doctor {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// What a word in a version adds; 0 for one that says nothing ("v").
int PartOf(std::string_view word) {
  switch (word[0] | 0x20) {
    case 'a':
      return -3;
    case 'b':
      return -2;
    case 'r':
    case 't':  // 7.0.T10 came before 7.0
      return -1;
    default:
      return 0;
  }
}

}  // namespace

std::vector<int> VersionParts(std::string_view version) {
  std::vector<int> parts;
  for (size_t i = 0; i < version.size() && parts.size() < 12;) {
    if (version[i] == '+') break;  // a local version: "+cpu", "+git4c901a4"
    if (IsDigit(version[i])) {
      int value = 0;
      while (i < version.size() && IsDigit(version[i])) {
        if (value < 100000000) value = value * 10 + (version[i] - '0');
        ++i;
      }
      parts.push_back(value);
    } else if (IsLetter(version[i])) {
      const size_t start = i;
      while (i < version.size() && IsLetter(version[i])) ++i;
      const int part = PartOf(version.substr(start, i - start));
      if (part != 0 && start > 0) parts.push_back(part);
    } else {
      ++i;
    }
  }
  return parts;
}

int CompareVersions(std::string_view a, std::string_view b) {
  const std::vector<int> x = VersionParts(a);
  const std::vector<int> y = VersionParts(b);
  for (size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
    const int p = i < x.size() ? x[i] : 0;
    const int q = i < y.size() ? y[i] : 0;
    if (p != q) return p < q ? -1 : 1;
  }
  return 0;
}

bool IsSameRelease(std::string_view a, std::string_view b, size_t n) {
  const std::vector<int> x = VersionParts(a);
  const std::vector<int> y = VersionParts(b);
  for (size_t i = 0; i < n; ++i) {
    if ((i < x.size() ? x[i] : 0) != (i < y.size() ? y[i] : 0)) return false;
  }
  return true;
}

std::string BaseVersion(std::string_view version) {
  std::string base;
  int n_dots = 0;
  for (size_t i = version.starts_with('v') ? 1 : 0; i < version.size(); ++i) {
    if (version[i] == '.') {
      if (++n_dots > 2 || i + 1 >= version.size() || !IsDigit(version[i + 1])) {
        break;
      }
    } else if (!IsDigit(version[i])) {
      break;
    }
    base += version[i];
  }
  return base;
}

}  // namespace belay::doctor
