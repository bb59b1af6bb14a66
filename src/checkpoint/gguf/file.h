// SPDX-License-Identifier: Apache-2.0
// One GGUF file: "GGUF", version, counts, metadata (typed values by key),
// tensor infos, then the data at multiples of general.alignment. Little-endian.
// Versions 2 and 3; they differ only in that 3 allows big-endian files, which
// are refused. Source of the rules: docs/gguf.md of ggml-org/ggml.
#ifndef BELAY_CHECKPOINT_GGUF_FILE_H_
#define BELAY_CHECKPOINT_GGUF_FILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/gguf/types.h"
#include "tensor/block_format.h"
#include "tensor/shape.h"

namespace belay::checkpoint::gguf {

// A metadata value. Integers of every width are widened; arrays are of one
// kind. Texts point into the file.
using Value = std::variant<uint64_t, int64_t, double, bool, std::string_view,
                           std::vector<int64_t>, std::vector<double>,
                           std::vector<std::string_view>>;

// Metadata by key; the getters return nothing for a value of another kind.
class Metadata {
 public:
  // False when the key is there already.
  bool Add(std::string_view key, Value value) {
    return values_.emplace(key, std::move(value)).second;
  }
  const Value* Find(std::string_view key) const {
    const auto it = values_.find(key);
    return it == values_.end() ? nullptr : &it->second;
  }
  std::optional<int64_t> Int(std::string_view key) const;
  std::optional<double> Number(std::string_view key) const;  // int or float
  std::optional<bool> Bool(std::string_view key) const;
  std::optional<std::string_view> Text(std::string_view key) const;

  const std::map<std::string_view, Value>& values() const { return values_; }

 private:
  std::map<std::string_view, Value> values_;
};

struct TensorInfo {
  std::string_view name;
  // Outermost first, as everywhere in Belay: the file's order reversed.
  Shape shape;
  uint32_t type = 0;
  uint64_t offset = 0;  // of its first byte in the file
  uint64_t bytes = 0;
  const std::byte* data = nullptr;
};

// A mapped file, checked completely: every tensor of a type that Belay reads
// lies inside the mapping. A tensor of another type has no data; whoever needs
// it is told (GGUF-004).
class GgufFile {
 public:
  // Errors: SYS-001, GGUF-001 (not a GGUF file, or a version that we do not
  // read), CKPT-001 (ends before its tensors), GGUF-002 (header cut off or not
  // what the format says), CKPT-004 (tensors overlap, are misaligned or out of
  // range), CKPT-012 (a tensor or key twice).
  static StatusOr<std::unique_ptr<GgufFile>> Open(const std::string& path);

  // The same over bytes that the caller keeps alive; `where` names them.
  static StatusOr<std::unique_ptr<GgufFile>> FromBytes(
      std::span<const std::byte> bytes, std::string where);

  const std::string& path() const { return path_; }
  uint64_t file_bytes() const { return bytes_.size(); }
  uint32_t version() const { return version_; }
  const Metadata& metadata() const { return metadata_; }
  std::span<const TensorInfo> tensors() const { return tensors_; }

  // MappedFile::ReleasePages.
  void ReleasePages() const {
    if (mapping_ != nullptr) mapping_->ReleasePages();
  }

 private:
  GgufFile() = default;
  Status Parse();

  std::string path_;
  std::unique_ptr<MappedFile> mapping_;  // null after FromBytes
  std::span<const std::byte> bytes_;
  uint32_t version_ = 0;
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
};

// The data of a tensor as views. Plain: its shape and dtype; blocks: U8 [rows,
// row bytes], all dimensions but the last flattened to rows. GGUF-004 for a
// type that Belay does not read, with what to do instead.
StatusOr<StoredView> ViewOf(const TensorInfo& tensor);

// A model of one file, or of all "-0000I-of-0000N" files beside `path`.
struct GgufSet {
  std::vector<std::unique_ptr<GgufFile>> files;
  std::unordered_map<std::string_view, const TensorInfo*> tensors;

  const Metadata& metadata() const { return files.front()->metadata(); }
};

// Errors as GgufFile::Open; CKPT-011 (a part is missing), CKPT-010 (the parts
// disagree with split.count, split.no or split.tensors.count), CKPT-012 (a
// tensor in two parts). `path` may be any part.
StatusOr<GgufSet> OpenSet(const std::string& path);

// Whether the file begins as a GGUF file does.
bool LooksLikeGguf(const std::string& path);

}  // namespace belay::checkpoint::gguf

#endif  // BELAY_CHECKPOINT_GGUF_FILE_H_
