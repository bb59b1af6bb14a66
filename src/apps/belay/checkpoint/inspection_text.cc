// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>

#include "apps/belay/checkpoint/inspection.h"

namespace belay::apps {
namespace {

// 4.0 KB, 159.6 GB: powers of 1000, as publishers count.
std::string Bytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 999.95 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes)
                   : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

// 284.3 B, 13.3 B, 10.9 M.
std::string Count(double count) {
  if (count >= 999.95e9) return fmt::format("{:.2f} T", count / 1e12);
  if (count >= 999.95e6) return fmt::format("{:.1f} B", count / 1e9);
  if (count >= 999.95e3) return fmt::format("{:.1f} M", count / 1e6);
  return fmt::format("{:.0f}", count);
}

std::string Flops(double flops) {
  return flops >= 1e12 ? fmt::format("{:.2f} TFLOP", flops / 1e12)
                       : fmt::format("{:.2f} GFLOP", flops / 1e9);
}

class Printer {
 public:
  Printer(const Inspection& inspection, const Context& context)
      : i_(inspection), c_(inspection.config), context_(context) {}

  void Print() {
    Head();
    Model();
    Parameters();
    Tables();
    Cache();
    Decode();
    Leftovers();
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    context_.out << fmt::format(format, std::forward<Args>(args)...) << "\n";
  }
  const char* T(const char* en, const char* zh) const {
    return context_.T(en, zh);
  }

  void Head() {
    if (i_.n_files == 0) {
      Line("{}", i_.source);
    } else {
      Line("{} ({} {})", i_.source, i_.n_files,
           i_.n_files == 1 ? T("file", "个文件") : T("files", "个文件"));
    }
  }

  void Model() {
    std::map<spec::LayerKind, int64_t> n;
    for (int64_t l = 0; l < c_.n_layers; ++l) ++n[c_.kind(l)];
    Line("  {}: {} = {} {} + {} HCA (1:128) + {} CSA (1:4); {} {}; MTP {}",
         T("layers", "层"), c_.n_layers, n[spec::LayerKind::kSliding],
         T("sliding", "滑动窗口"), n[spec::LayerKind::kHca],
         n[spec::LayerKind::kCsa], c_.n_hash_layers,
         T("hash-routed", "哈希路由"), c_.n_mtp_layers);
    if (c_.draft_block > 0) {
      Line("  {}: {} {}, {} {}", T("DSpark draft", "DSpark 草稿模型"),
           c_.n_draft_stages, T("stages", "级"), T("block", "块长"),
           c_.draft_block);
    }
    Line("  {}: {}, {} {} x {} (rope {}), q_lora {}, o {} x {}, {} {}",
         T("width", "宽度"), c_.dim, T("heads", "头"), c_.n_heads, c_.head_dim,
         c_.rope_head_dim, c_.q_lora_rank, c_.o_groups, c_.o_lora_rank,
         T("window", "窗口"), c_.window_size);
    Line("  {}: {} x {}, top {}", T("indexer", "索引器"), c_.index_n_heads,
         c_.index_head_dim, c_.index_topk);
    Line("  {}: {} ({} {}) + {} {}, {} {}, {}", T("experts", "专家"),
         c_.n_routed_experts, c_.n_activated_experts, T("a token", "个/词元"),
         c_.n_shared_experts, T("shared", "共享"), T("inner width", "内部宽度"),
         c_.moe_inter_dim,
         c_.expert_format == spec::ExpertFormat::kFp4 ? "FP4" : "FP8");
    Line("  {}: {}, {}: {}", T("vocabulary", "词表"), c_.vocab_size,
         T("positions", "最大位置"), c_.max_positions);
  }

  void Parameters() {
    Line("");
    Line("{}: {} ({} {})", T("parameters", "参数"),
         Count(static_cast<double>(i_.parameters.total)), T("active", "激活"),
         Count(static_cast<double>(i_.parameters.active)));
    if (i_.parameters.mtp > 0) {
      Line("  + MTP: {} ({} {})", Count(static_cast<double>(i_.parameters.mtp)),
           T("active", "激活"),
           Count(static_cast<double>(i_.parameters.mtp_active)));
    }
    Line("");
  }

  void Row(std::string_view name, const TensorSum& sum) {
    Line("  {:<14} {:>8} {:>10} {:>10}", name, sum.n_tensors,
         Bytes(static_cast<double>(sum.bytes)),
         Count(static_cast<double>(sum.parameters)));
  }

  void Tables() {
    Line("{}: {}, {} ({} B)", T("tensors", "张量"), i_.total.n_tensors,
         Bytes(static_cast<double>(i_.total.bytes)), i_.total.bytes);
    for (int f = 0; f < spec::kFamilies; ++f) {
      const TensorSum& sum = i_.families[static_cast<size_t>(f)];
      if (sum.n_tensors > 0) {
        Row(FamilyName(static_cast<spec::Family>(f)), sum);
      }
    }
    Line("");
    for (const auto& [dtype, sum] : i_.dtypes) Row(DtypeName(dtype), sum);
    Line("");
  }

  void Cache() {
    Line("{}: {:.1f} {}, {} {} ({} {} + {} {})", T("cache", "缓存"),
         i_.cache.bytes_per_token, T("bytes a token", "字节/词元"),
         Bytes(static_cast<double>(i_.cache.fixed_bytes())),
         T("a sequence", "/序列"),
         Bytes(static_cast<double>(i_.cache.window_bytes)), T("window", "窗口"),
         Bytes(static_cast<double>(i_.cache.compressor_bytes)),
         T("compressors", "压缩器"));
    Line(
        "  {}: KV {} B (FP8 + BF16), {} {} B (FP4); {} {}: {}", T("rows", "行"),
        i_.kv_row.bytes(), T("indexer", "索引器"), i_.index_row.bytes(),
        T("positions", "位置数"), c_.max_positions,
        Bytes(i_.cache.bytes_per_token * static_cast<double>(c_.max_positions) +
              static_cast<double>(i_.cache.fixed_bytes())));
  }

  void Decode() {
    Line("{} {}: {} {} + {} {}, {}", T("a decode step at", "一步解码，上下文"),
         i_.decode_context, Bytes(i_.decode.bytes() - i_.decode.cache_bytes),
         T("of weights", "权重"), Bytes(i_.decode.cache_bytes),
         T("of cache", "缓存"), Flops(i_.decode.flops()));
  }

  void Leftovers() {
    for (const auto& [name, sum] : i_.report.unused) {
      Line("{}: {}: {} {}, {}", T("not used", "未使用"), name, sum.n_tensors,
           T("tensors", "个张量"), Bytes(static_cast<double>(sum.bytes)));
    }
    constexpr size_t kMaxNames = 10;
    for (size_t n = 0; n < i_.report.unknown.size(); ++n) {
      if (n == kMaxNames) {
        Line("{}: {} {}", T("unknown", "未知张量"),
             i_.report.unknown.size() - kMaxNames, T("more", "个未列出"));
        break;
      }
      Line("{}: {}", T("unknown", "未知张量"), i_.report.unknown[n]);
    }
  }

  const Inspection& i_;
  const spec::ModelConfig& c_;
  const Context& context_;
};

}  // namespace

void PrintInspection(const Inspection& inspection, const Context& context) {
  Printer(inspection, context).Print();
}

}  // namespace belay::apps
