// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/eos.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error_ids.h"
#include "base/file.h"

namespace belay::checkpoint {
namespace {

Status AddId(const nlohmann::json& value, const std::string& path,
             std::vector<int32_t>& ids) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > INT32_MAX) {
    return MakeError(kConfBadValue, {.where = path,
                                     .what = "eos_token_id",
                                     .expected = "token id",
                                     .got = value.type_name()});
  }
  const auto id = value.get<int32_t>();
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::vector<int32_t>> EosIds(const std::string& folder,
                                      int32_t config_eos) {
  std::vector<int32_t> ids = {config_eos};
  const std::string path = folder + "/generation_config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return ids;
  BELAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const auto json = nlohmann::json::parse(text, nullptr,
                                          /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return MakeError(
        kConfMalformed,
        {.where = path, .what = "", .expected = "a JSON object", .got = ""});
  }
  const auto eos = json.find("eos_token_id");
  if (eos == json.end() || eos->is_null()) return ids;
  if (!eos->is_array()) {
    BELAY_RETURN_IF_ERROR(AddId(*eos, path, ids));
    return ids;
  }
  for (const auto& value : *eos) {
    BELAY_RETURN_IF_ERROR(AddId(value, path, ids));
  }
  return ids;
}

}  // namespace belay::checkpoint
