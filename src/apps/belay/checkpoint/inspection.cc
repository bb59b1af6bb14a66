// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/checkpoint/inspection.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace belay::apps {
namespace {

using nlohmann::ordered_json;

// Where the cost of a decode step is told: long enough that every kind of
// layer has something to read.
constexpr int64_t kDecodeContext = 8192;

ordered_json SumToJson(const TensorSum& sum) {
  return {{"tensors", sum.n_tensors},
          {"bytes", sum.bytes},
          {"parameters", sum.parameters}};
}

ordered_json LayersToJson(const spec::ModelConfig& c) {
  std::map<spec::LayerKind, int64_t> counts;
  for (int64_t i = 0; i < c.n_layers; ++i) ++counts[c.kind(i)];
  return {{"total", c.n_layers},
          {"sliding", counts[spec::LayerKind::kSliding]},
          {"hca", counts[spec::LayerKind::kHca]},
          {"csa", counts[spec::LayerKind::kCsa]},
          {"hash_routed", c.n_hash_layers},
          {"mtp", c.n_mtp_layers},
          {"draft_stages", c.n_draft_stages}};
}

ordered_json DecodeToJson(const Inspection& i) {
  ordered_json families = ordered_json::object();
  for (int f = 0; f < spec::kFamilies; ++f) {
    const spec::FamilyCost& cost = i.decode.families[static_cast<size_t>(f)];
    families[std::string(FamilyName(static_cast<spec::Family>(f)))] = {
        {"bytes", cost.bytes}, {"flops", cost.flops}};
  }
  return {{"context", i.decode_context},
          {"bytes", i.decode.bytes()},
          {"cache_bytes", i.decode.cache_bytes},
          {"flops", i.decode.flops()},
          {"attention_flops", i.decode.attention_flops},
          {"indexer_flops", i.decode.indexer_flops},
          {"by_family", families}};
}

}  // namespace

void TensorSum::Add(const spec::ExpectedTensor& tensor) {
  ++n_tensors;
  bytes += tensor.bytes();
  parameters += tensor.parameters();
}

Inspection Inspect(std::string source, const spec::ModelConfig& config,
                   const std::vector<spec::ExpectedTensor>& tensors) {
  Inspection i;
  i.source = std::move(source);
  i.config = config;
  for (const spec::ExpectedTensor& tensor : tensors) {
    i.total.Add(tensor);
    i.families[static_cast<size_t>(tensor.family)].Add(tensor);
    i.dtypes[tensor.dtype].Add(tensor);
    if (tensor.layer >= config.n_layers) i.mtp.Add(tensor);
  }
  i.parameters = spec::CountParameters(config);
  i.kv_row = spec::OfficialKvRow(config);
  i.index_row = spec::OfficialIndexRow(config);
  i.cache = spec::CostOfCache(config, i.kv_row, i.index_row);
  i.decode_context = std::min(kDecodeContext, config.max_positions - 1);
  i.decode = spec::CostOfStep(config, {.context = i.decode_context}, i.kv_row,
                              i.index_row);
  return i;
}

ordered_json InspectionToJson(const Inspection& i) {
  ordered_json families = ordered_json::object();
  for (int f = 0; f < spec::kFamilies; ++f) {
    families[std::string(FamilyName(static_cast<spec::Family>(f)))] =
        SumToJson(i.families[static_cast<size_t>(f)]);
  }
  ordered_json dtypes = ordered_json::object();
  for (const auto& [dtype, sum] : i.dtypes) {
    dtypes[std::string(DtypeName(dtype))] = SumToJson(sum);
  }
  ordered_json unused = ordered_json::object();
  for (const auto& [name, sum] : i.report.unused) {
    unused[name] = {{"tensors", sum.n_tensors}, {"bytes", sum.bytes}};
  }
  ordered_json tensors = SumToJson(i.total);
  tensors["mtp"] = SumToJson(i.mtp);
  tensors["by_family"] = families;
  tensors["by_dtype"] = dtypes;
  return {{"source", i.source},
          {"files", i.n_files},
          {"config", ordered_json::parse(spec::ConfigToJson(i.config))},
          {"layers", LayersToJson(i.config)},
          {"parameters",
           {{"total", i.parameters.total},
            {"active", i.parameters.active},
            {"mtp", i.parameters.mtp},
            {"mtp_active", i.parameters.mtp_active}}},
          {"tensors", tensors},
          {"cache",
           {{"bytes_per_token", i.cache.bytes_per_token},
            {"bytes_per_page", i.cache.bytes_per_page},
            {"page_tokens", kPageTokens},
            {"fixed_bytes_per_sequence", i.cache.fixed_bytes()},
            {"window_bytes", i.cache.window_bytes},
            {"compressor_bytes", i.cache.compressor_bytes},
            {"kv_row_bytes", i.kv_row.bytes()},
            {"index_row_bytes", i.index_row.bytes()}}},
          {"decode_step", DecodeToJson(i)},
          {"unused", unused},
          {"unknown", i.report.unknown},
          {"warnings", i.report.warnings}};
}

}  // namespace belay::apps
