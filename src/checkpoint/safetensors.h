// SPDX-License-Identifier: Apache-2.0
// One safetensors file: 8 bytes little-endian header length, a JSON header
// {name: {dtype, shape, data_offsets: [begin, end)}}, then the data without
// holes. Source of the rules: the format description of
// github.com/huggingface/safetensors (README, section Format).
#ifndef BELAY_CHECKPOINT_SAFETENSORS_H_
#define BELAY_CHECKPOINT_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/view.h"

namespace belay::checkpoint {

// A longer header is refused, as the reference implementation does.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;

struct StoredTensor {
  std::string name;
  ConstTensorView view;  // contiguous, borrowed from the SafetensorsFile
  uint64_t offset = 0;   // of its first byte in the file
};

// A mapped file whose header has been checked completely: every view lies
// inside the mapping.
class SafetensorsFile {
 public:
  // Maps `path`. Errors: SYS-001 (cannot read), CKPT-001 (the file ends before
  // its tensors), CKPT-002 (header longer than the file), CKPT-003 (header not
  // what the format says, or a dtype that we do not know), CKPT-004 (offsets
  // overlap, leave holes, are out of order, or do not fit dtype and shape),
  // CKPT-012 (a name twice).
  //
  // Nothing is copied but tensors whose place in the file is no multiple of
  // their element size (the reference writer never makes any).
  static StatusOr<std::unique_ptr<SafetensorsFile>> Open(
      const std::string& path);

  // The same over bytes that the caller keeps alive; `where` names them.
  static StatusOr<std::unique_ptr<SafetensorsFile>> FromBytes(
      std::span<const std::byte> bytes, std::string where);

  const std::string& path() const { return path_; }
  uint64_t file_bytes() const { return bytes_.size(); }
  // MappedFile::ReleasePages.
  void ReleasePages() const {
    if (mapping_ != nullptr) mapping_->ReleasePages();
  }

  // In the order of their offsets.
  std::span<const StoredTensor> tensors() const { return tensors_; }
  // Null when there is none.
  const StoredTensor* Find(std::string_view name) const;
  // CKPT-007 when there is none.
  StatusOr<ConstTensorView> Get(std::string_view name) const;

  // The header's __metadata__; usually {"format": "pt"}.
  const std::map<std::string, std::string>& metadata() const {
    return metadata_;
  }

 private:
  SafetensorsFile() = default;
  Status Parse();

  std::string path_;
  std::unique_ptr<MappedFile> mapping_;  // null after FromBytes
  std::span<const std::byte> bytes_;
  std::vector<StoredTensor> tensors_;
  std::unordered_map<std::string_view, size_t> by_name_;
  std::map<std::string, std::string> metadata_;
  std::vector<Buffer> realigned_;
};

// What a file to be written will hold.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;

  uint64_t bytes() const {
    return static_cast<uint64_t>(shape.n_elements()) * DtypeBytes(dtype);
  }
};

// The order in which a writer wants its tensors: larger elements first, then by
// name, so that every tensor is aligned (the order of the reference).
void SortForFile(std::vector<TensorSpec>& specs);

// Bytes of the file with these tensors, header included.
uint64_t SafetensorsFileBytes(
    const std::vector<TensorSpec>& specs,
    const std::map<std::string, std::string>& metadata);

// Streams one file. The same tensors give the same bytes, whatever the order
// in which they are listed.
class SafetensorsWriter {
 public:
  // Sorts `specs` (SortForFile) and writes the header. Errors: SYS-002,
  // CKPT-012 (a name twice).
  static StatusOr<std::unique_ptr<SafetensorsWriter>> Create(
      const std::string& path, std::vector<TensorSpec> specs,
      const std::map<std::string, std::string>& metadata = {});

  // The order in which the data has to come.
  std::span<const TensorSpec> specs() const { return specs_; }

  // The next bytes of the data, in pieces of any size. CHECKs that no more
  // comes than the specs say.
  Status Append(std::span<const std::byte> bytes);

  // CHECKs that everything has come; then the file appears under its name.
  Status Finish();

 private:
  SafetensorsWriter(std::unique_ptr<AtomicFileWriter> file,
                    std::vector<TensorSpec> specs);

  std::unique_ptr<AtomicFileWriter> file_;
  std::vector<TensorSpec> specs_;
  uint64_t bytes_left_ = 0;
};

// A whole small file at once: the tensors' data is read through the views
// (strided rows are allowed). Errors as SafetensorsWriter.
struct NamedView {
  std::string name;
  ConstTensorView view;
};
Status WriteSafetensors(
    const std::string& path, std::span<const NamedView> tensors,
    const std::map<std::string, std::string>& metadata = {});

}  // namespace belay::checkpoint

#endif  // BELAY_CHECKPOINT_SAFETENSORS_H_
