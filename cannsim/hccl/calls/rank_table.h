// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_CANNSIM_HCCL_CALLS_RANK_TABLE_H_
#define BELAY_CANNSIM_HCCL_CALLS_RANK_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace cannsim::hccl {

struct RankTable {
  uint32_t n_ranks = 0;
  std::string key;  // the same for all who were given the same text
};

// Reads the ranks of a rank table: `server_list[].device[].rank_id` (1.0, 1.2)
// or `rank_list[].rank_id` (2.0). False and a sentence when it is none, when
// ranks lack or come twice, or when there is more than one server.
bool ParseRankTable(std::string_view text, RankTable* table,
                    std::string* error);

}  // namespace cannsim::hccl

#endif  // BELAY_CANNSIM_HCCL_CALLS_RANK_TABLE_H_
