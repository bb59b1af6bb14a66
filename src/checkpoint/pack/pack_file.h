// SPDX-License-Identifier: Apache-2.0
// Files of `belay pack`: the weights of a model in the order in which one back
// end's kernels read them, so that loading is reading.
//
// Little-endian, written from front to back:
//   start     u8 magic[8] "BELAYPK\n", u32 version, zeros to kPackAlignment
//   data      each tensor at a multiple of kPackAlignment
//   header    layout and config.json, each u32 length and bytes; u64 bytes of
//             the weights in the original; u32 n; for each tensor: name (u32
//             length and bytes), u8 dtype, u8 format, u8 packed, u8 rank, rank
//             x i64, u64 offset from the start of the file, u64 bytes, u64
//             checksum
//   trailer   u64 offset, u64 bytes and u64 checksum of the header, u64 bytes
//             of the file, u64 checksum of the 32 bytes before it
//
// The layout names what a packed tensor's bytes mean: who reads another one
// refuses the file.
#ifndef BELAY_CHECKPOINT_PACK_PACK_FILE_H_
#define BELAY_CHECKPOINT_PACK_PACK_FILE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "spec/config.h"
#include "tensor/block_format.h"

namespace belay::checkpoint {

inline constexpr uint32_t kPackVersion = 1;
inline constexpr size_t kPackAlignment = 4096;
// The file in the folder that `belay pack` writes.
inline constexpr const char* kPackFileName = "model.belay";

// 64 bits over the bytes: of pieces of 1 MiB each on its own, then over those.
// It finds damage, not malice.
uint64_t PackChecksum(std::span<const std::byte> bytes, ThreadPool* pool);

class PackFile {
 public:
  // Maps and checks everything but the data. Errors: SYS-001, PACK-001 (no such
  // file, another version), PACK-002 (cut off, or a checksum of the prologue or
  // header does not fit, or an entry lies outside), CONF-* (the config).
  static StatusOr<std::unique_ptr<PackFile>> Open(const std::string& path);

  const std::string& layout() const { return layout_; }
  const spec::ModelConfig& config() const { return config_; }
  uint64_t weight_bytes() const { return weight_bytes_; }
  uint64_t file_bytes() const { return file_->bytes().size(); }
  size_t n_tensors() const { return tensors_.size(); }

  // The tensor; empty when the file has none of this name.
  StoredView Find(std::string_view name) const;

  // Reads all data: PACK-002 names the first tensor whose checksum does not
  // fit. `pool` may be null.
  Status Verify(ThreadPool* pool) const;

  void ReleasePages() const { file_->ReleasePages(); }

 private:
  struct Entry {
    StoredView view;
    std::span<const std::byte> bytes;
    uint64_t checksum = 0;
  };

  PackFile() = default;
  Status ReadHeader();
  Status ReadEntries(std::span<const std::byte> header, uint64_t data_end);

  std::unique_ptr<MappedFile> file_;
  std::string layout_;
  spec::ModelConfig config_;
  uint64_t weight_bytes_ = 0;
  std::unordered_map<std::string, Entry> tensors_;
};

// Writes such a file, tensor after tensor.
class PackWriter {
 public:
  // `weight_bytes`: of the tensors in the original, for reports. Errors of
  // AtomicFileWriter.
  static StatusOr<std::unique_ptr<PackWriter>> Create(
      const std::string& path, std::string layout,
      const spec::ModelConfig& config, uint64_t weight_bytes);

  // Appends one as Find() gives it back: its packed bytes, or the view's rows.
  // `pool` may be null.
  Status Add(const std::string& name, const StoredView& view, ThreadPool* pool);

  // Writes header and prologue; the file appears. Returns its size.
  StatusOr<uint64_t> Finish();

 private:
  PackWriter() = default;
  Status Append(std::span<const std::byte> bytes);
  Status Pad();

  std::unique_ptr<AtomicFileWriter> out_;
  std::string layout_;
  std::string config_json_;
  uint64_t weight_bytes_ = 0;
  uint64_t file_bytes_ = 0;  // so far
  uint32_t n_tensors_ = 0;
  std::string entries_;
};

}  // namespace belay::checkpoint

#endif  // BELAY_CHECKPOINT_PACK_PACK_FILE_H_
