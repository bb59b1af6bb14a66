// SPDX-License-Identifier: Apache-2.0
// The compressor of DeepSeek-V4 in the interface of vllm-ascend (xLLM has
// another of the same name), and what it needs to know of the rows to come.
//
// A token at position p of sequence b keeps kv and score (with ape) in row
// p % block of block stateBlockTable[b][p / block] of the state cache; block 0
// is no block: nothing is kept there and nothing is read. Row j of the result
// pools positions j r .. j r + r - 1 and, with coff 2, the first channels of
// the group before; there is none before group 0. The rows of all sequences
// follow one another; those that are left over are not written.
#include <algorithm>
#include <cmath>
#include <utility>

#include "aclnnop/aclnn_compressor.h"
#include "aclnnop/aclnn_compressor_metadata.h"
#include "cannsim/ops/at.h"

namespace cannsim {
namespace {

constexpr int64_t kInterleave = 2;  // rotaryMode, as vllm-ascend calls it

struct CompressorOptions {
  int64_t rope_dim = 0;
  int64_t ratio = 0;
  int64_t coff = 0;
  double eps = 0;
};

enum CompressorArray {
  kX,
  kWkv,
  kWgate,
  kState,
  kApe,
  kNorm,
  kSin,
  kCos,
  kTable,
  kSeqs,
  kStart,
  kOut
};

// The tokens of one sequence in this call.
struct Sequence {
  int64_t batch = 0;
  int64_t first = 0;  // of x's rows
  int64_t n = 0;
  int64_t start = 0;  // position of the first
};

class Compressor {
 public:
  Compressor(const Arrays& a, const CompressorOptions& options)
      : a_(a),
        options_(options),
        dim_(a[kOut].dims.back()),
        width_(dim_ * options.coff) {}

  int Run() {
    kv_ = Project(a_[kWkv]);
    score_ = Project(a_[kWgate]);
    for (const Sequence& s : Sequences()) {
      const int code = RunSequence(s);
      if (code != 0) return code;
    }
    return 0;
  }

 private:
  // x times a weight transposed, as float32, for all rows of x.
  std::vector<double> Project(const Array& weight) const {
    const Array& x = a_[kX];
    const auto rows = RowsOf(x, 1);
    std::vector<std::vector<double>> w;
    for (int64_t c = 0; c < width_; ++c) {
      w.push_back(ReadRow(weight, Place(weight, c)));
    }
    std::vector<double> out;
    for (const int64_t row : rows) {
      const std::vector<double> token = ReadRow(x, row);
      for (const std::vector<double>& column : w) {
        double sum = 0;
        for (size_t k = 0; k < token.size(); ++k) sum += token[k] * column[k];
        out.push_back(RoundTo(ACL_FLOAT, sum));
      }
    }
    return out;
  }

  std::vector<Sequence> Sequences() const {
    std::vector<Sequence> all;
    const Array& x = a_[kX];
    const bool lists = Given(a_[kSeqs]);
    const int64_t n =
        lists ? a_[kSeqs].dims[0] - 1 : (x.rank() == 3 ? x.dims[0] : 1);
    for (int64_t b = 0; b < n; ++b) {
      Sequence s;
      s.batch = b;
      if (lists) {
        s.first = AtI(a_[kSeqs], b);
        s.n = AtI(a_[kSeqs], b + 1) - s.first;
      } else {
        s.n = x.dims[x.dims.size() - 2];
        s.first = b * s.n;
      }
      s.start = Given(a_[kStart]) ? AtI(a_[kStart], b) : 0;
      all.push_back(s);
    }
    return all;
  }

  int RunSequence(const Sequence& s) {
    const auto n_rows = static_cast<int64_t>(kv_.size()) / width_;
    if (s.n < 0 || s.first < 0 || s.first + s.n > n_rows || s.start < 0) {
      return IndexOutOfRange("end of a sequence", s.first + s.n, n_rows + 1);
    }
    const int64_t r = options_.ratio;
    for (int64_t i = 0; i < s.n; ++i) {
      const int64_t position = s.start + i;
      AddApe(s.first + i, position);
      int code = Keep(s, position);
      if (code == 0 && (position + 1) % r == 0) code = Pool(s, position / r);
      if (code != 0) return code;
    }
    return 0;
  }

  void AddApe(int64_t row, int64_t position) {
    for (int64_t c = 0; c < width_; ++c) {
      double& s = score_[static_cast<size_t>(row * width_ + c)];
      s = RoundTo(ACL_FLOAT, s + At(a_[kApe], position % options_.ratio, c));
    }
  }

  // Where the state of a position lies; -1 for block 0.
  int FindState(const Sequence& s, int64_t position, int64_t* at) const {
    const Array& table = a_[kTable];
    const Array& state = a_[kState];
    *at = -1;
    if (!Given(table)) return 0;
    const int64_t index = position / state.dims[1];
    if (index >= table.dims[1]) {
      return IndexOutOfRange("place in the block table", index, table.dims[1]);
    }
    const int64_t block = AtI(table, s.batch, index);
    if (block < 0 || block >= state.dims[0]) {
      return IndexOutOfRange("block", block, state.dims[0]);
    }
    if (block > 0) *at = Place(state, block, position % state.dims[1]);
    return 0;
  }

  int Keep(const Sequence& s, int64_t position) const {
    int64_t at = 0;
    const int code = FindState(s, position, &at);
    if (code != 0 || at < 0) return code;
    const Array& state = a_[kState];
    const auto row =
        static_cast<size_t>((s.first + position - s.start) * width_);
    for (int64_t c = 0; c < width_; ++c) {
      const auto k = row + static_cast<size_t>(c);
      StoreF(state, at + c * state.strides.back(), kv_[k]);
      StoreF(state, at + (width_ + c) * state.strides.back(), score_[k]);
    }
    return 0;
  }

  // kv and score of a channel of an earlier or present position.
  int Read(const Sequence& s, int64_t position, int64_t channel, double* kv,
           double* score) const {
    if (position >= s.start) {
      const auto k = static_cast<size_t>(
          (s.first + position - s.start) * width_ + channel);
      *kv = kv_[k];
      *score = score_[k];
      return 0;
    }
    int64_t at = 0;
    const int code = FindState(s, position, &at);
    if (code != 0) return code;
    if (at < 0) {
      return IndexOutOfRange("position without state", position, s.start);
    }
    const Array& state = a_[kState];
    *kv = LoadF(state, at + channel * state.strides.back());
    *score = LoadF(state, at + (width_ + channel) * state.strides.back());
    return 0;
  }

  // Softmax over the window of each channel, and the weighted sum.
  int Pool(const Sequence& s, int64_t j) {
    const int64_t r = options_.ratio;
    const int64_t last = (j + 1) * r;
    const int64_t first = options_.coff == 2 && j > 0 ? last - 2 * r : last - r;
    std::vector<double> row;
    for (int64_t d = 0; d < dim_; ++d) {
      std::vector<double> kv;
      std::vector<double> score;
      for (int64_t p = first; p < last; ++p) {
        const bool current = p >= last - r;
        const int64_t channel = options_.coff == 2 && current ? dim_ + d : d;
        kv.push_back(0);
        score.push_back(0);
        const int code = Read(s, p, channel, &kv.back(), &score.back());
        if (code != 0) return code;
      }
      const double most = *std::max_element(score.begin(), score.end());
      double total = 0;
      double sum = 0;
      for (size_t i = 0; i < kv.size(); ++i) {
        const double weight = std::exp(score[i] - most);
        total += weight;
        sum += weight * kv[i];
      }
      row.push_back(sum / total);
    }
    return Write(std::move(row));
  }

  // RMSNorm and rope into the next row.
  int Write(std::vector<double> row) {
    const Array& out = a_[kOut];
    if (n_written_ >= out.dims[0] || n_written_ >= a_[kCos].dims[0]) {
      return IndexOutOfRange("row", n_written_,
                             std::min(out.dims[0], a_[kCos].dims[0]));
    }
    double squares = 0;
    for (const double x : row) squares += x * x;
    const double inverse =
        1 / std::sqrt(squares / static_cast<double>(dim_) + options_.eps);
    for (size_t d = 0; d < row.size(); ++d) {
      row[d] *= inverse * At(a_[kNorm], d);
    }
    const auto nope = static_cast<size_t>(dim_ - options_.rope_dim);
    for (int64_t i = 0; i < options_.rope_dim; i += 2) {
      const size_t d = nope + static_cast<size_t>(i);
      const double x = row[d];
      const double y = row[d + 1];
      row[d] =
          x * At(a_[kCos], n_written_, i) - y * At(a_[kSin], n_written_, i);
      row[d + 1] = y * At(a_[kCos], n_written_, i + 1) +
                   x * At(a_[kSin], n_written_, i + 1);
    }
    WriteRow(out, Place(out, n_written_++), row);
    return 0;
  }

  const Arrays& a_;
  const CompressorOptions options_;
  const int64_t dim_;
  const int64_t width_;
  std::vector<double> kv_;
  std::vector<double> score_;
  int64_t n_written_ = 0;
};

bool IsTriple(int64_t dim, int64_t coff, int64_t ratio) {
  return (dim == 512 && coff == 2 && ratio == 4) ||
         (dim == 128 && coff == 2 && ratio == 4) ||
         (dim == 512 && coff == 1 && ratio == 128);
}

struct CompressorTensors {
  const aclTensor* x;
  const aclTensor* wkv;
  const aclTensor* wgate;
  const aclTensor* state;
  const aclTensor* ape;
  const aclTensor* norm;
  const aclTensor* sin;
  const aclTensor* cos;
  const aclTensor* table;
  const aclTensor* seqs;
  const aclTensor* start;
  const aclTensor* out;
};

void CheckWeights(Phase1& call, const CompressorTensors& t,
                  const CompressorOptions& options) {
  const int64_t dim = t.out->dims.back();
  call.Require(IsTriple(dim, options.coff, options.ratio),
               "D, coff and cmpRatio must be 512, 2, 4 or 128, 2, 4 or "
               "512, 1, 128");
  if (!call.ok()) return;
  const int64_t width = dim * options.coff;
  const int64_t h = t.x->dims.back();
  call.Require(h >= 1024 && h <= 10240 && h % 512 == 0,
               "H must be 1024 to 10240 and a multiple of 512");
  call.Require((t.x->dtype == ACL_BF16 || t.x->dtype == ACL_FLOAT16) &&
                   t.wkv->dtype == t.x->dtype && t.wgate->dtype == t.x->dtype &&
                   t.out->dtype == t.x->dtype,
               "x, wkv, wgate and cmpKv must agree in dtype: BF16 or FLOAT16");
  call.Require(t.wkv->dims == Dims{width, h} && t.wgate->dims == t.wkv->dims,
               "wkv and wgate must be [coff D, H]");
  call.Require(
      t.ape->dtype == ACL_FLOAT && t.ape->dims == Dims{options.ratio, width},
      "ape must be FLOAT [cmpRatio, coff D]");
  call.Require(IsFloat(t.norm->dtype) && t.norm->dims == Dims{dim},
               "normWeight must be [D]");
  call.Require(t.state->dtype == ACL_FLOAT && t.state->rank() == 3 &&
                   t.state->dims[2] == 2 * width && t.state->dims[1] >= 16 &&
                   t.state->dims[1] <= 1024 && t.state->dims[1] % 16 == 0,
               "stateCache must be FLOAT [blocks, block, 2 coff D], the block "
               "16 to 1024 in steps of 16");
}

void CheckLists(Phase1& call, const CompressorTensors& t,
                const CompressorOptions& options) {
  call.Require(options.rope_dim == 64 && t.sin->dims == t.cos->dims &&
                   t.cos->rank() == 2 && t.cos->dims[1] == options.rope_dim,
               "ropeHeadDim must be 64 and the rope tables [rows, 64]");
  const bool floats = t.cos->dtype == ACL_FLOAT &&
                      cannsim_profile()->generation == Generation::kA3;
  call.Require(
      t.sin->dtype == t.cos->dtype && (floats || t.cos->dtype == t.x->dtype),
      "the rope tables must be of x's dtype (on A3 also FLOAT)");
  for (const aclTensor* one : {t.table, t.seqs, t.start}) {
    call.Require(!Given(one) || one->dtype == ACL_INT32,
                 "tables and lists must be INT32");
  }
  call.Require(
      t.x->rank() == 3 ? !Given(t.seqs) : t.x->rank() == 2 && Given(t.seqs),
      "x must be [T, H] with cuSeqlens, or [B, S, H] without");
  if (!call.ok()) return;
  const int64_t n = Given(t.seqs) ? t.seqs->n_elements() - 1 : t.x->dims[0];
  call.Require(!Given(t.seqs) || t.seqs->rank() == 1,
               "cuSeqlens must be [B + 1]");
  call.Require(!Given(t.start) || t.start->dims == Dims{n},
               "startPos must be [B]");
  call.Require(
      !Given(t.table) || (t.table->rank() == 2 && t.table->dims[0] == n),
      "stateBlockTable must be [B, blocks of a sequence]");
}

struct MetadataOptions {
  int64_t block = 0;
  int64_t ratio = 0;
  bool pairs = false;
  int64_t n_requests = 0;
};

// ropeCos, ropeSin, cuSeqlens, startPos, kvBlockTable, compressCos,
// compressSin, slotMapping. What is left over: slots -1, tables 0.
int Metadata(const Arrays& a, const MetadataOptions& options) {
  int64_t row = 0;
  const auto slot = [&](int64_t block, int64_t offset) {
    if (options.pairs) {
      StoreI(a[7], Place(a[7], row, 0), block);
      StoreI(a[7], Place(a[7], row, 1), offset);
    } else {
      StoreI(a[7], Place(a[7], row),
             block < 0 ? -1 : block * options.block + offset);
    }
  };
  const auto fill = [&](int64_t position) {
    for (int64_t i = 0; i < a[5].dims[1]; ++i) {
      Put(a[5], position < 0 ? 0 : At(a[0], position, i), row, i);
      Put(a[6], position < 0 ? 0 : At(a[1], position, i), row, i);
    }
  };
  for (int64_t b = 0; b < options.n_requests; ++b) {
    const int64_t start = AtI(a[3], b);
    if (start < 0) return IndexOutOfRange("start", start, a[0].dims[0]);
    const int64_t end = start + AtI(a[2], b + 1) - AtI(a[2], b);
    for (int64_t j = start / options.ratio; j < end / options.ratio; ++j) {
      const int64_t position = j * options.ratio;
      if (row >= a[5].dims[0]) {
        return IndexOutOfRange("row", row, a[5].dims[0]);
      }
      if (position >= a[0].dims[0]) {
        return IndexOutOfRange("position", position, a[0].dims[0]);
      }
      if (j / options.block >= a[4].dims[1]) {
        return IndexOutOfRange("place in the block table", j / options.block,
                               a[4].dims[1]);
      }
      fill(position);
      slot(AtI(a[4], b, j / options.block), j % options.block);
      ++row;
    }
  }
  for (; row < a[5].dims[0]; ++row) {
    fill(-1);
    slot(-1, -1);
  }
  return 0;
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnCompressorGetWorkspaceSize(
    const aclTensor* x, const aclTensor* wkv, const aclTensor* wgate,
    aclTensor* stateCache, const aclTensor* ape, const aclTensor* normWeight,
    const aclTensor* ropeSin, const aclTensor* ropeCos,
    const aclTensor* stateBlockTableOptional,
    const aclTensor* cuSeqlensOptional, const aclTensor* sequsedOptional,
    const aclTensor* startPosOptional, int64_t ropeHeadDim, int64_t cmpRatio,
    int64_t coff, double normEps, int64_t rotaryMode, int64_t cacheMode,
    int64_t stateCacheStrideDim0, const aclTensor* cmpKv,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnCompressor", workspaceSize, executor);
  call.OnlyOn(cannsim::kNpus);
  call.NotNull(stateCache, "stateCache");
  if (!call.ok()) return call.Finish(nullptr);
  const aclTensor state =
      cannsim::WithFirstStride(*stateCache, stateCacheStrideDim0);
  call.In(x, "x").In(wkv, "wkv").In(wgate, "wgate").Out(&state, "stateCache");
  call.In(ape, "ape").In(normWeight, "normWeight").In(ropeSin, "ropeSin");
  call.In(ropeCos, "ropeCos");
  call.InOptional(stateBlockTableOptional, "stateBlockTable");
  call.InOptional(cuSeqlensOptional, "cuSeqlens");
  call.InOptional(startPosOptional, "startPos").Out(cmpKv, "cmpKv");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(!cannsim::Given(sequsedOptional) &&
                   rotaryMode == cannsim::kInterleave && cacheMode == 1,
               "only rotaryMode 2 and cacheMode 1 are simulated, without "
               "seqused");
  call.Require(x->rank() >= 2 && cmpKv->rank() == 2 && cmpRatio >= 1,
               "x must be [T, H] or [B, S, H], cmpKv [rows, D]");
  if (!call.ok()) return call.Finish(nullptr);
  const cannsim::CompressorOptions options{ropeHeadDim, cmpRatio, coff,
                                           normEps};
  const cannsim::CompressorTensors tensors{x,
                                           wkv,
                                           wgate,
                                           &state,
                                           ape,
                                           normWeight,
                                           ropeSin,
                                           ropeCos,
                                           stateBlockTableOptional,
                                           cuSeqlensOptional,
                                           startPosOptional,
                                           cmpKv};
  cannsim::CheckWeights(call, tensors, options);
  cannsim::CheckLists(call, tensors, options);
  return call.Finish([options](const cannsim::Arrays& a) {
    return cannsim::Compressor(a, options).Run();
  });
}
CANNSIM_PHASE2(Compressor)

aclnnStatus aclnnCompressorMetadataGetWorkspaceSize(
    const aclTensor* ropeCos, const aclTensor* ropeSin,
    const aclTensor* cuSeqlens, const aclTensor* startPos,
    const aclTensor* kvBlockTable, int64_t kvBlockSize,
    int64_t slotMappingFormat, int64_t cmpRatio, int64_t actualNumReqs,
    const aclTensor* compressCos, const aclTensor* compressSin,
    const aclTensor* slotMapping, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnCompressorMetadata", workspaceSize, executor);
  call.OnlyOn(cannsim::kNpus);
  call.In(ropeCos, "ropeCos").In(ropeSin, "ropeSin");
  call.In(cuSeqlens, "cuSeqlens").In(startPos, "startPos");
  call.In(kvBlockTable, "kvBlockTable").Out(compressCos, "compressCos");
  call.Out(compressSin, "compressSin").Out(slotMapping, "slotMapping");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(kvBlockSize >= 1 && kvBlockSize <= (1 << 20) && cmpRatio >= 1 &&
                   cmpRatio <= (1 << 20) &&
                   (slotMappingFormat == 0 || slotMappingFormat == 1),
               "kvBlockSize and cmpRatio must be 1 to 2^20, slotMappingFormat "
               "0 (flat) or 1 (block and offset)");
  call.Require(ropeCos->rank() == 2 && ropeSin->dims == ropeCos->dims &&
                   compressCos->rank() == 2 &&
                   compressSin->dims == compressCos->dims &&
                   compressCos->dims[1] == ropeCos->dims[1],
               "the rope tables must be [positions, n], the results [rows, n]");
  for (const aclTensor* one : {ropeSin, compressCos, compressSin}) {
    call.Require(cannsim::IsFloat(one->dtype) && one->dtype == ropeCos->dtype,
                 "the tables must agree in a float dtype");
  }
  for (const aclTensor* one :
       {cuSeqlens, startPos, kvBlockTable, slotMapping}) {
    call.Require(one->dtype == ACL_INT32, "lists must be INT32");
  }
  if (!call.ok()) return call.Finish(nullptr);
  const int64_t rows = compressCos->dims[0];
  call.Require(
      slotMapping->dims == (slotMappingFormat == 1 ? cannsim::Dims{rows, 2}
                                                   : cannsim::Dims{rows}),
      "slotMapping must be [rows], or [rows, 2] for format 1");
  call.Require(
      actualNumReqs >= 0 && cuSeqlens->rank() == 1 &&
          cuSeqlens->dims[0] > actualNumReqs && startPos->rank() == 1 &&
          startPos->dims[0] >= actualNumReqs && kvBlockTable->rank() == 2 &&
          kvBlockTable->dims[0] >= actualNumReqs,
      "cuSeqlens, startPos and kvBlockTable must reach actualNumReqs");
  const cannsim::MetadataOptions options{kvBlockSize, cmpRatio,
                                         slotMappingFormat == 1, actualNumReqs};
  return call.Finish([options](const cannsim::Arrays& a) {
    return cannsim::Metadata(a, options);
  });
}
CANNSIM_PHASE2(CompressorMetadata)

}  // extern "C"
