// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/error_ids.h"
#include "checkpoint/safetensors_header.h"

namespace belay::checkpoint {
namespace {

constexpr size_t kLengthBytes = 8;

uint64_t ReadU64(const std::byte* data) {
  uint64_t value = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    value |= std::to_integer<uint64_t>(data[i]) << (8 * i);
  }
  return value;
}

Status CheckHeaderLength(uint64_t header_bytes, size_t file_bytes) {
  if (header_bytes > file_bytes - kLengthBytes) {
    return MakeError(kCkptHeaderTooLong,
                     {"", "", "at most " + std::to_string(file_bytes - 8),
                      std::to_string(header_bytes) + " bytes"});
  }
  if (header_bytes > kMaxHeaderBytes) {
    return MakeError(
        kCkptHeaderMalformed,
        {"", "header too large", "at most " + std::to_string(kMaxHeaderBytes),
         std::to_string(header_bytes) + " bytes"});
  }
  return absl::OkStatus();
}

// The data must end with the last tensor.
Status CheckDataBytes(const Header& header, uint64_t data_bytes) {
  const uint64_t end = header.entries.empty() ? 0 : header.entries.back().end;
  if (end == data_bytes) return absl::OkStatus();
  if (end > data_bytes) {
    return MakeError(kCkptTruncated, {header.entries.back().name, "",
                                      std::to_string(end) + " bytes of data",
                                      std::to_string(data_bytes)});
  }
  return MakeError(kCkptBadOffsets, {"", "bytes after the last tensor",
                                     std::to_string(end) + " bytes of data",
                                     std::to_string(data_bytes)});
}

std::string JsonString(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false,
                                   nlohmann::json::error_handler_t::replace);
}

// Length field and header, padded with spaces so that the data starts at a
// multiple of 8.
std::string HeaderText(const std::vector<TensorSpec>& sorted,
                       const std::map<std::string, std::string>& metadata) {
  std::string json = "{";
  const auto separate = [&json] {
    if (json.size() > 1) json += ',';
  };
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    bool first = true;
    for (const auto& [key, value] : metadata) {
      if (!first) json += ',';
      first = false;
      json += JsonString(key) + ':' + JsonString(value);
    }
    json += '}';
  }
  uint64_t begin = 0;
  for (const TensorSpec& spec : sorted) {
    separate();
    json += JsonString(spec.name) + ":{\"dtype\":\"";
    json += DtypeName(spec.dtype);
    json += "\",\"shape\":[";
    for (int i = 0; i < spec.shape.rank(); ++i) {
      if (i > 0) json += ',';
      json += std::to_string(spec.shape[i]);
    }
    json += "],\"data_offsets\":[" + std::to_string(begin) + ',' +
            std::to_string(begin + spec.bytes()) + "]}";
    begin += spec.bytes();
  }
  json += '}';
  json.resize(AlignUp(json.size(), kLengthBytes), ' ');
  std::string text(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i) {
    text[i] = static_cast<char>((json.size() >> (8 * i)) & 0xff);
  }
  return text + json;
}

uint64_t DataBytes(const std::vector<TensorSpec>& specs) {
  uint64_t bytes = 0;
  for (const TensorSpec& spec : specs) bytes += spec.bytes();
  return bytes;
}

}  // namespace

StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(
    const std::string& path) {
  std::unique_ptr<SafetensorsFile> file(new SafetensorsFile);
  BELAY_ASSIGN_OR_RETURN(file->mapping_, MappedFile::Open(path));
  file->path_ = path;
  file->bytes_ = file->mapping_->bytes();
  const Status status = file->Parse();
  if (!status.ok()) return WithContext(status, path);
  return file;
}

StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::FromBytes(
    std::span<const std::byte> bytes, std::string where) {
  std::unique_ptr<SafetensorsFile> file(new SafetensorsFile);
  file->path_ = std::move(where);
  file->bytes_ = bytes;
  const Status status = file->Parse();
  if (!status.ok()) return WithContext(status, file->path_);
  return file;
}

Status SafetensorsFile::Parse() {
  if (bytes_.size() < kLengthBytes) {
    return MakeError(kCkptTruncated, {"", "no header length", "8 bytes",
                                      std::to_string(bytes_.size())});
  }
  const uint64_t header_bytes = ReadU64(bytes_.data());
  BELAY_RETURN_IF_ERROR(CheckHeaderLength(header_bytes, bytes_.size()));
  const std::string_view json(
      reinterpret_cast<const char*>(bytes_.data()) + kLengthBytes,
      header_bytes);
  if (json.empty() || json[0] != '{') {
    return MakeError(kCkptHeaderMalformed,
                     {"byte 8", "the header must begin with {", "", ""});
  }
  BELAY_ASSIGN_OR_RETURN(Header header, ParseHeader(json));
  const uint64_t data_start = kLengthBytes + header_bytes;
  BELAY_RETURN_IF_ERROR(CheckDataBytes(header, bytes_.size() - data_start));

  metadata_ = std::move(header.metadata);
  tensors_.reserve(header.entries.size());
  by_name_.reserve(header.entries.size());
  for (HeaderEntry& entry : header.entries) {
    const uint64_t offset = data_start + entry.begin;
    const uint64_t n_bytes = entry.end - entry.begin;
    const void* data = bytes_.data() + offset;
    if (reinterpret_cast<uintptr_t>(data) % DtypeBytes(entry.dtype) != 0) {
      BELAY_ASSIGN_OR_RETURN(Buffer copy, Buffer::Create(n_bytes));
      if (n_bytes > 0) std::memcpy(copy.data(), data, n_bytes);
      data = copy.data();
      realigned_.push_back(std::move(copy));
    }
    tensors_.push_back({std::move(entry.name),
                        ConstTensorView(data, entry.dtype, entry.shape),
                        offset});
  }
  for (size_t i = 0; i < tensors_.size(); ++i) by_name_[tensors_[i].name] = i;
  return absl::OkStatus();
}

const StoredTensor* SafetensorsFile::Find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

StatusOr<ConstTensorView> SafetensorsFile::Get(std::string_view name) const {
  const StoredTensor* tensor = Find(name);
  if (tensor != nullptr) return tensor->view;
  return MakeError(kCkptMissingTensor,
                   {path_ + ": " + std::string(name), "", "", ""});
}

void SortForFile(std::vector<TensorSpec>& specs) {
  std::sort(specs.begin(), specs.end(),
            [](const TensorSpec& a, const TensorSpec& b) {
              const size_t bytes_a = DtypeBytes(a.dtype);
              const size_t bytes_b = DtypeBytes(b.dtype);
              return std::tie(bytes_b, a.name) < std::tie(bytes_a, b.name);
            });
}

uint64_t SafetensorsFileBytes(
    const std::vector<TensorSpec>& specs,
    const std::map<std::string, std::string>& metadata) {
  std::vector<TensorSpec> sorted = specs;
  SortForFile(sorted);
  return HeaderText(sorted, metadata).size() + DataBytes(sorted);
}

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<AtomicFileWriter> file,
                                     std::vector<TensorSpec> specs)
    : file_(std::move(file)),
      specs_(std::move(specs)),
      bytes_left_(DataBytes(specs_)) {}

StatusOr<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Create(
    const std::string& path, std::vector<TensorSpec> specs,
    const std::map<std::string, std::string>& metadata) {
  SortForFile(specs);
  std::vector<std::string_view> names;
  names.reserve(specs.size());
  for (const TensorSpec& spec : specs) names.push_back(spec.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    return MakeError(kCkptDuplicateTensor,
                     {path + ": " + std::string(*twice), "", "", ""});
  }
  BELAY_ASSIGN_OR_RETURN(auto file, AtomicFileWriter::Create(path));
  const std::string header = HeaderText(specs, metadata);
  BELAY_RETURN_IF_ERROR(
      file->Append(std::as_bytes(std::span(header.data(), header.size()))));
  return std::unique_ptr<SafetensorsWriter>(
      new SafetensorsWriter(std::move(file), std::move(specs)));
}

Status SafetensorsWriter::Append(std::span<const std::byte> bytes) {
  BELAY_CHECK(bytes.size() <= bytes_left_);
  bytes_left_ -= bytes.size();
  return file_->Append(bytes);
}

Status SafetensorsWriter::Finish() {
  BELAY_CHECK(bytes_left_ == 0);
  return file_->Commit();
}

Status WriteSafetensors(const std::string& path,
                        std::span<const NamedView> tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::vector<TensorSpec> specs;
  std::unordered_map<std::string_view, const ConstTensorView*> views;
  for (const NamedView& tensor : tensors) {
    specs.push_back({tensor.name, tensor.view.dtype(), tensor.view.shape()});
    views[tensor.name] = &tensor.view;
  }
  BELAY_ASSIGN_OR_RETURN(
      auto writer, SafetensorsWriter::Create(path, std::move(specs), metadata));
  for (const TensorSpec& spec : writer->specs()) {
    const ConstTensorView& view = *views[spec.name];
    if (view.n_elements() == 0) continue;
    if (view.is_contiguous()) {
      BELAY_RETURN_IF_ERROR(writer->Append(
          {static_cast<const std::byte*>(view.data()), view.bytes()}));
      continue;
    }
    for (int64_t r = 0; r < view.n_rows(); ++r) {
      BELAY_RETURN_IF_ERROR(
          writer->Append({view.row<std::byte>(r), view.row_bytes()}));
    }
  }
  return writer->Finish();
}

}  // namespace belay::checkpoint
