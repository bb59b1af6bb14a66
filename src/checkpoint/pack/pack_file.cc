// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/pack/pack_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error_ids.h"

namespace belay::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "BELAYPK\n";
constexpr size_t kTrailerBytes = 5 * sizeof(uint64_t);
constexpr size_t kPieceBytes = size_t{1} << 20;
// Far beyond any model; keeps sums of a damaged header from overflowing.
constexpr int64_t kMaxDim = int64_t{1} << 40;

// Multiplier and additive constant of splitmix64 (Vigna), a good mixer.
constexpr uint64_t kMix1 = 0xbf58476d1ce4e5b9u;
constexpr uint64_t kMix2 = 0x94d049bb133111ebu;
constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * kMix1;
  x = (x ^ (x >> 27)) * kMix2;
  return x ^ (x >> 31);
}

// Four lanes, so that their multiplications overlap.
uint64_t HashPiece(std::span<const std::byte> bytes) {
  uint64_t lanes[4] = {1, 2, 3, 4};
  size_t at = 0;
  for (; at + sizeof(lanes) <= bytes.size(); at += sizeof(lanes)) {
    uint64_t words[4];
    std::memcpy(words, bytes.data() + at, sizeof(words));
    for (int i = 0; i < 4; ++i) {
      lanes[i] = std::rotl(lanes[i] ^ words[i], 29) * kStep;
    }
  }
  uint64_t sum = bytes.size();
  for (const uint64_t lane : lanes) sum = Mix(sum ^ lane);
  for (; at < bytes.size(); ++at) {
    sum = Mix(sum + kStep + static_cast<uint64_t>(bytes[at]));
  }
  return sum;
}

template <typename T>
void Put(T value, std::string& out) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void PutText(std::string_view text, std::string& out) {
  Put(static_cast<uint32_t>(text.size()), out);
  out.append(text);
}

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Takes fields from a header; after one that is not there everything is 0.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T Take() {
    T value{};
    if (Has(sizeof(T))) {
      std::memcpy(&value, bytes_.data() + at_, sizeof(T));
      at_ += sizeof(T);
    }
    return value;
  }

  std::string TakeText() {
    const auto n = Take<uint32_t>();
    if (!Has(n)) return "";
    const auto* text = reinterpret_cast<const char*>(bytes_.data() + at_);
    at_ += n;
    return {text, n};
  }

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && at_ == bytes_.size(); }

 private:
  bool Has(size_t n) {
    ok_ = ok_ && n <= bytes_.size() - at_;
    return ok_;
  }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

Status Damaged(const std::string& where, std::string what) {
  return MakeError(
      kPackDamaged,
      {.where = where, .what = std::move(what), .expected = "", .got = ""});
}

// The bytes that a view of this dtype, shape and format has; packed ones may
// have any number.
bool BytesFit(const StoredView& view, uint64_t bytes) {
  return view.packed.empty() ? bytes == view.view.bytes() : bytes > 0;
}

}  // namespace

uint64_t PackChecksum(std::span<const std::byte> bytes, ThreadPool* pool) {
  const size_t n = (bytes.size() + kPieceBytes - 1) / kPieceBytes;
  std::vector<uint64_t> sums(n);
  const auto hash = [&](size_t i, int) {
    const size_t begin = i * kPieceBytes;
    sums[i] = HashPiece(
        bytes.subspan(begin, std::min(kPieceBytes, bytes.size() - begin)));
  };
  if (pool != nullptr && n > 1) {
    pool->ParallelFor(n, hash);
  } else {
    for (size_t i = 0; i < n; ++i) hash(i, 0);
  }
  uint64_t sum = 0;
  for (const uint64_t piece : sums) sum = Mix(sum + kStep + piece);
  return sum;
}

StatusOr<std::unique_ptr<PackFile>> PackFile::Open(const std::string& path) {
  std::unique_ptr<PackFile> file(new PackFile());
  BELAY_ASSIGN_OR_RETURN(file->file_, MappedFile::Open(path));
  BELAY_RETURN_IF_ERROR(file->ReadHeader());
  return file;
}

Status PackFile::ReadHeader() {
  const std::span<const std::byte> bytes = file_->bytes();
  const std::string& path = file_->path();
  Reader start(bytes.first(std::min<size_t>(bytes.size(), kPackAlignment)));
  std::string magic(kMagic.size(), 0);
  for (char& c : magic) c = start.Take<char>();
  const auto version = start.Take<uint32_t>();
  if (!start.ok() || magic != kMagic || version != kPackVersion) {
    return MakeError(
        kPackNotPack,
        {.where = path,
         .what = "",
         .expected = "BELAYPK " + std::to_string(kPackVersion),
         .got = magic == kMagic ? "BELAYPK " + std::to_string(version) : ""});
  }
  if (bytes.size() < kPackAlignment + kTrailerBytes) {
    return Damaged(path, "the file is cut off");
  }
  const auto trailer_bytes = bytes.last(kTrailerBytes);
  Reader trailer(trailer_bytes);
  const auto header_at = trailer.Take<uint64_t>();
  const auto header_bytes = trailer.Take<uint64_t>();
  const auto header_sum = trailer.Take<uint64_t>();
  const auto file_bytes = trailer.Take<uint64_t>();
  const auto trailer_sum = trailer.Take<uint64_t>();
  if (trailer_sum !=
      HashPiece(trailer_bytes.first(kTrailerBytes - sizeof(uint64_t)))) {
    return Damaged(path, "the file is cut off, or its last bytes changed");
  }
  if (file_bytes != bytes.size() || header_at > bytes.size() ||
      header_bytes > bytes.size() - header_at - kTrailerBytes) {
    return Damaged(path, std::to_string(file_bytes) + " bytes were written");
  }
  const auto header = bytes.subspan(header_at, header_bytes);
  if (header_sum != PackChecksum(header, nullptr)) {
    return Damaged(path, "header");
  }
  return ReadEntries(header, header_at);
}

Status PackFile::ReadEntries(std::span<const std::byte> header,
                             uint64_t data_end) {
  const std::string& path = file_->path();
  Reader in(header);
  layout_ = in.TakeText();
  const std::string config = in.TakeText();
  weight_bytes_ = in.Take<uint64_t>();
  const auto n = in.Take<uint32_t>();
  for (uint32_t i = 0; in.ok() && i < n; ++i) {
    std::string name = in.TakeText();
    const auto dtype = in.Take<uint8_t>();
    const auto format = in.Take<uint8_t>();
    const auto packed = in.Take<uint8_t>();
    const auto rank = in.Take<uint8_t>();
    if (dtype > static_cast<uint8_t>(DType::kBool) || format >= kBlockFormats ||
        packed > 1 || rank > Shape::kMaxRank) {
      return Damaged(path, name);
    }
    Shape shape;
    for (uint8_t d = 0; d < rank; ++d) {
      shape.push_back(std::clamp<int64_t>(in.Take<int64_t>(), 0, kMaxDim));
    }
    const auto offset = in.Take<uint64_t>();
    const auto n_bytes = in.Take<uint64_t>();
    Entry entry;
    entry.checksum = in.Take<uint64_t>();
    if (!in.ok() || offset > data_end || n_bytes > data_end - offset ||
        offset % kPackAlignment != 0) {
      return Damaged(path, name);
    }
    entry.bytes = file_->bytes().subspan(offset, n_bytes);
    entry.view = {
        ConstTensorView(entry.bytes.data(), static_cast<DType>(dtype), shape),
        static_cast<BlockFormat>(format)};
    if (packed != 0) entry.view.packed = entry.bytes;
    if (!BytesFit(entry.view, n_bytes)) return Damaged(path, name);
    tensors_.insert_or_assign(std::move(name), entry);
  }
  if (!in.at_end()) return Damaged(path, "header");
  BELAY_ASSIGN_OR_RETURN(config_, spec::ParseConfig(config, path));
  return absl::OkStatus();
}

StoredView PackFile::Find(std::string_view name) const {
  const auto found = tensors_.find(std::string(name));
  return found == tensors_.end() ? StoredView() : found->second.view;
}

Status PackFile::Verify(ThreadPool* pool) const {
  for (const auto& [name, entry] : tensors_) {
    if (PackChecksum(entry.bytes, pool) != entry.checksum) {
      return Damaged(file_->path(), name);
    }
    file_->ReleasePages();
  }
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<PackWriter>> PackWriter::Create(
    const std::string& path, std::string layout,
    const spec::ModelConfig& config, uint64_t weight_bytes) {
  std::unique_ptr<PackWriter> writer(new PackWriter());
  BELAY_ASSIGN_OR_RETURN(writer->out_, AtomicFileWriter::Create(path));
  writer->layout_ = std::move(layout);
  writer->config_json_ = spec::ConfigToJson(config);
  writer->weight_bytes_ = weight_bytes;
  std::string start(kMagic);
  Put(kPackVersion, start);
  BELAY_RETURN_IF_ERROR(writer->Append(BytesOf(start)));
  return writer;
}

Status PackWriter::Append(std::span<const std::byte> bytes) {
  file_bytes_ += bytes.size();
  return out_->Append(bytes);
}

Status PackWriter::Pad() {
  const std::vector<std::byte> zeros(
      (kPackAlignment - file_bytes_ % kPackAlignment) % kPackAlignment);
  return Append(zeros);
}

Status PackWriter::Add(const std::string& name, const StoredView& view,
                       ThreadPool* pool) {
  BELAY_RETURN_IF_ERROR(Pad());
  std::span<const std::byte> bytes = view.packed;
  std::vector<std::byte> rows;
  if (bytes.empty() && view.view.is_contiguous()) {
    bytes = {view.view.row<std::byte>(0), view.view.bytes()};
  } else if (bytes.empty()) {
    for (int64_t r = 0; r < view.view.n_rows(); ++r) {
      const std::byte* row = view.view.row<std::byte>(r);
      rows.insert(rows.end(), row, row + view.view.row_bytes());
    }
    bytes = rows;
  }
  PutText(name, entries_);
  Put(static_cast<uint8_t>(view.view.dtype()), entries_);
  Put(static_cast<uint8_t>(view.format), entries_);
  Put(static_cast<uint8_t>(view.packed.empty() ? 0 : 1), entries_);
  const Shape& shape = view.view.shape();
  Put(static_cast<uint8_t>(shape.rank()), entries_);
  for (int d = 0; d < shape.rank(); ++d) Put(shape[d], entries_);
  Put(file_bytes_, entries_);
  Put(static_cast<uint64_t>(bytes.size()), entries_);
  Put(PackChecksum(bytes, pool), entries_);
  ++n_tensors_;
  return Append(bytes);
}

StatusOr<uint64_t> PackWriter::Finish() {
  std::string header;
  PutText(layout_, header);
  PutText(config_json_, header);
  Put(weight_bytes_, header);
  Put(n_tensors_, header);
  header += entries_;
  BELAY_RETURN_IF_ERROR(Pad());
  std::string trailer;
  Put(file_bytes_, trailer);
  Put(static_cast<uint64_t>(header.size()), trailer);
  Put(PackChecksum(BytesOf(header), nullptr), trailer);
  Put(static_cast<uint64_t>(file_bytes_ + header.size() + kTrailerBytes),
      trailer);
  Put(HashPiece(BytesOf(trailer)), trailer);
  BELAY_RETURN_IF_ERROR(Append(BytesOf(header)));
  BELAY_RETURN_IF_ERROR(Append(BytesOf(trailer)));
  BELAY_RETURN_IF_ERROR(out_->Commit());
  return file_bytes_;
}

}  // namespace belay::checkpoint
