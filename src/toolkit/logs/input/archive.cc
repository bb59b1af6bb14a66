// SPDX-License-Identifier: Apache-2.0
#include "toolkit/logs/input/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "base/error_ids_toolkit.h"

namespace belay::logs {
namespace {

constexpr size_t kPieceBytes = size_t{256} << 10;

struct CloseArchive {
  void operator()(archive* a) const { archive_read_free(a); }
};
using Reader = std::unique_ptr<archive, CloseArchive>;

Status Damaged(const std::string& where, archive* a) {
  const char* what = archive_error_string(a);
  return MakeError(kLogsBadArchive, {.where = where,
                                     .what = what != nullptr ? what : "",
                                     .expected = "",
                                     .got = ""});
}

Status OverLimit(const std::string& where, const char* what, uint64_t limit) {
  return MakeError(kLogsArchiveLimit,
                   {.where = where,
                    .what = what,
                    .expected = fmt::format("at most {}", limit),
                    .got = "more"});
}

// Formats that start with bytes of their own, and a file that is compressed
// only. (libarchive's "mtree" would take any text for an archive.)
Reader NewReader() {
  Reader reader(archive_read_new());
  archive* a = reader.get();
  archive_read_support_filter_gzip(a);
  archive_read_support_filter_bzip2(a);
  archive_read_support_filter_xz(a);
  archive_read_support_filter_zstd(a);
  archive_read_support_filter_lz4(a);
  archive_read_support_format_tar(a);
  archive_read_support_format_gnutar(a);
  archive_read_support_format_zip(a);
  archive_read_support_format_7zip(a);
  archive_read_support_format_cpio(a);
  archive_read_support_format_raw(a);
  return reader;
}

class Unpacker {
 public:
  Unpacker(const ArchiveLimits& limits, const PieceFn& piece)
      : limits_(limits), piece_(piece) {}

  Status Open(const std::string& path) {
    const Reader reader = NewReader();
    if (archive_read_open_filename(reader.get(), path.c_str(), kPieceBytes) !=
        ARCHIVE_OK) {
      return Damaged(path, reader.get());
    }
    outer_ = reader.get();
    BELAY_RETURN_IF_ERROR(Walk(reader.get(), path, 1));
    return inner_error_;
  }

 private:
  // A file of the archive that another one inside it reads from.
  struct Inner {
    archive* outer;
    Unpacker* unpacker;
    std::string first;  // bytes that were read already
    std::vector<char> buffer;
  };

  static la_ssize_t ReadInner(archive* a, void* data, const void** bytes) {
    auto* inner = static_cast<Inner*>(data);
    if (!inner->first.empty()) {
      inner->buffer.assign(inner->first.begin(), inner->first.end());
      inner->first.clear();
      *bytes = inner->buffer.data();
      return static_cast<la_ssize_t>(inner->buffer.size());
    }
    inner->buffer.resize(kPieceBytes);
    const la_ssize_t n = archive_read_data(inner->outer, inner->buffer.data(),
                                           inner->buffer.size());
    if (n < 0) {
      archive_set_error(a, EILSEQ, "%s", "the archive around it is damaged");
      return -1;
    }
    if (!inner->unpacker->Count(static_cast<uint64_t>(n))) return -1;
    *bytes = inner->buffer.data();
    return n;
  }

  // False when this is too much.
  bool Count(uint64_t n_bytes) {
    n_bytes_ += n_bytes;
    const auto n_packed = static_cast<uint64_t>(
        std::max<la_int64_t>(archive_filter_bytes(outer_, -1), 1));
    is_over_ = n_bytes_ > limits_.max_bytes ||
               (n_bytes_ > limits_.free_bytes &&
                n_bytes_ / limits_.max_ratio > n_packed);
    return !is_over_;
  }

  Status TooMuch(const std::string& where) const {
    if (n_files_ > limits_.max_files) {
      return OverLimit(where, "files", limits_.max_files);
    }
    return n_bytes_ > limits_.max_bytes
               ? OverLimit(where, "bytes unpacked", limits_.max_bytes)
               : OverLimit(where, "times its packed size", limits_.max_ratio);
  }

  Status Walk(archive* a, const std::string& name, int depth) {
    archive_entry* entry = nullptr;
    while (true) {
      const int result = archive_read_next_header(a, &entry);
      if (is_over_) return TooMuch(name);
      if (result == ARCHIVE_EOF) return absl::OkStatus();
      if (result == ARCHIVE_FATAL || result == ARCHIVE_RETRY) {
        return Damaged(name, a);
      }
      if (++n_files_ > limits_.max_files) {
        is_over_ = true;
        return OverLimit(name, "files", limits_.max_files);
      }
      if (archive_entry_filetype(entry) != AE_IFREG &&
          archive_format(a) != ARCHIVE_FORMAT_RAW) {
        continue;
      }
      BELAY_RETURN_IF_ERROR(File(a, NameOf(a, entry, name), depth));
    }
  }

  static std::string NameOf(archive* a, archive_entry* entry,
                            const std::string& name) {
    if (archive_format(a) == ARCHIVE_FORMAT_RAW) return name;
    const char* path = archive_entry_pathname_utf8(entry);
    if (path == nullptr) path = archive_entry_pathname(entry);
    return name + "/" + (path != nullptr ? path : "?");
  }

  Status File(archive* a, const std::string& name, int depth) {
    std::vector<char> buffer(kPieceBytes);
    bool is_first = true;
    while (true) {
      const la_ssize_t n = archive_read_data(a, buffer.data(), buffer.size());
      if (n < 0) return is_over_ ? TooMuch(name) : Damaged(name, a);
      if (!Count(static_cast<uint64_t>(n))) return TooMuch(name);
      const std::string_view piece(buffer.data(), static_cast<size_t>(n));
      if (is_first && depth < limits_.max_depth && LooksLikeArchive(piece)) {
        // A damaged archive inside a good one is told, and not the end.
        Status status = Nested(a, name, piece, depth);
        if (is_over_) return status;
        if (inner_error_.ok()) inner_error_ = status;
        return absl::OkStatus();
      }
      is_first = false;
      piece_(name, piece);
      if (n == 0) return absl::OkStatus();
    }
  }

  Status Nested(archive* a, const std::string& name, std::string_view first,
                int depth) {
    Inner inner{a, this, std::string(first), {}};
    const Reader reader = NewReader();
    if (archive_read_open(reader.get(), &inner, nullptr, ReadInner, nullptr) !=
        ARCHIVE_OK) {
      return is_over_ ? TooMuch(name) : Damaged(name, reader.get());
    }
    return Walk(reader.get(), name, depth + 1);
  }

  const ArchiveLimits& limits_;
  const PieceFn& piece_;
  archive* outer_ = nullptr;
  uint64_t n_bytes_ = 0, n_files_ = 0;
  bool is_over_ = false;
  Status inner_error_;
};

}  // namespace

bool LooksLikeArchive(std::string_view bytes) {
  static constexpr std::string_view kMagic[] = {
      {"\x1f\x8b", 2},          // gzip
      {"\x28\xb5\x2f\xfd", 4},  // zstd
      {"\xfd\x37zXZ\x00", 6},   // xz
      {"BZh", 3},               // bzip2
      {"\x04\x22\x4d\x18", 4},  // lz4
      {"PK\x03\x04", 4},        // zip
      {"PK\x05\x06", 4},        // an empty one
      {"7z\xbc\xaf\x27\x1c", 6}};
  for (const std::string_view magic : kMagic) {
    if (bytes.starts_with(magic)) return true;
  }
  return bytes.size() >= 262 && bytes.substr(257, 5) == "ustar";
}

Status ReadArchive(const std::string& path, const ArchiveLimits& limits,
                   const PieceFn& piece) {
  return Unpacker(limits, piece).Open(path);
}

}  // namespace belay::logs
