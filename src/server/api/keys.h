// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_SERVER_API_KEYS_H_
#define BELAY_SERVER_API_KEYS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace belay::server {

// The keys of an --api-key-file.
class ApiKeys {
 public:
  ApiKeys() = default;  // none: everybody may ask

  // One key a line; blank lines and those that begin with # are skipped.
  // SYS-001, SRV-002.
  static StatusOr<ApiKeys> Read(const std::string& path);
  static StatusOr<ApiKeys> Parse(std::string_view text,
                                 const std::string& where);

  bool empty() const { return keys_.empty(); }

  // The number of the key that `authorization` ("Bearer KEY") brings, or -1.
  // The time depends on the length of what was sent alone, neither on how much
  // of a key it matches nor on which one.
  int Find(std::string_view authorization) const;
  // The key of a number that Find gave.
  const std::string& key(int number) const {
    return keys_[static_cast<size_t>(number)];
  }

 private:
  std::vector<std::string> keys_;
};

}  // namespace belay::server

#endif  // BELAY_SERVER_API_KEYS_H_
