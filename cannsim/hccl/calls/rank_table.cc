// SPDX-License-Identifier: Apache-2.0
#include "cannsim/hccl/calls/rank_table.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "cannsim/hccl/segment.h"

namespace cannsim::hccl {
namespace {

using Json = nlohmann::json;

// Numbers of rank tables are texts in some formats.
bool ReadRank(const Json& entry, uint32_t* rank) {
  if (!entry.is_object()) return false;
  const auto it = entry.find("rank_id");
  if (it == entry.end()) return false;
  if (it->is_number_unsigned()) {
    const uint64_t value = it->get<uint64_t>();
    *rank = static_cast<uint32_t>(value);
    return value < kMaxRanks;
  }
  if (!it->is_string()) return false;
  const auto& text = it->get_ref<const std::string&>();
  const auto end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *rank);
  return result.ec == std::errc() && result.ptr == end && *rank < kMaxRanks;
}

bool TakeRanks(const Json& list, std::set<uint32_t>* ranks,
               std::string* error) {
  for (const Json& entry : list) {
    uint32_t rank = 0;
    if (!ReadRank(entry, &rank)) {
      *error = fmt::format("a rank_id is missing, or not below {}", kMaxRanks);
      return false;
    }
    if (!ranks->insert(rank).second) {
      *error = fmt::format("rank {} is there twice", rank);
      return false;
    }
  }
  return true;
}

const Json* Field(const Json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_array() ? &*it : nullptr;
}

}  // namespace

bool ParseRankTable(std::string_view text, RankTable* table,
                    std::string* error) {
  const Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) {
    *error = "not a JSON object";
    return false;
  }
  std::set<uint32_t> ranks;
  if (const Json* list = Field(root, "rank_list")) {
    if (!TakeRanks(*list, &ranks, error)) return false;
  } else if (const Json* servers = Field(root, "server_list")) {
    if (servers->size() != 1) {
      *error = fmt::format("{} servers; cannsim has one host", servers->size());
      return false;
    }
    const Json& server = servers->front();
    const Json* devices =
        server.is_object() ? Field(server, "device") : nullptr;
    if (devices == nullptr) {
      *error = "the server has no list of devices";
      return false;
    }
    if (!TakeRanks(*devices, &ranks, error)) return false;
  }
  if (ranks.empty() || *ranks.rbegin() + 1 != ranks.size()) {
    *error = fmt::format("{} ranks that do not count from 0 on", ranks.size());
    return false;
  }
  table->n_ranks = static_cast<uint32_t>(ranks.size());
  // FNV-1a: two tables that collide would have to be used at the same time.
  uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3ULL;
  }
  table->key = fmt::format("{:016x}", hash);
  return true;
}

}  // namespace cannsim::hccl
