// SPDX-License-Identifier: Apache-2.0
// Who shares prefixes with whom.
#ifndef BELAY_SERVER_API_CACHE_SALT_H_
#define BELAY_SERVER_API_CACHE_SALT_H_

#include <cstdint>
#include <string_view>

namespace belay::server {

// The 128 bits of a key of SipHash.
struct SipKey {
  uint64_t low = 0;
  uint64_t high = 0;
};

// SipHash-2-4 (Aumasson and Bernstein, 2012): who does not know the key can
// neither predict a value nor look for texts with equal ones.
uint64_t SipHash(const SipKey& key, std::string_view text);

// The salt of requests that come with `api_key` ("" = none) and `cache_salt`
// ("" = none): 0 when both are missing, else the hash of the salt under a key
// made of the API key. Requests of another API key meet it by chance alone (one
// in 2^64), whatever salt they send; and it is the same after a restart, when
// the list of keys has changed, too.
uint64_t CacheSalt(std::string_view api_key, std::string_view cache_salt);

}  // namespace belay::server

#endif  // BELAY_SERVER_API_CACHE_SALT_H_
