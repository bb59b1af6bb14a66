// SPDX-License-Identifier: Apache-2.0
#include "toolkit/doctor/machine/bundle.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/error_ids.h"
#include "base/error_ids_toolkit.h"

namespace belay::doctor {
namespace {

constexpr size_t kMaxText = size_t{64} << 20;
constexpr char kName[] = "machine.json";

struct FreeReader {
  void operator()(archive* a) const { archive_read_free(a); }
};
struct FreeWriter {
  void operator()(archive* a) const { archive_write_free(a); }
};
struct FreeEntry {
  void operator()(archive_entry* e) const { archive_entry_free(e); }
};

Status Bad(const std::string& where, const std::string& what) {
  return MakeError(kDoctBadBundle,
                   {.where = where, .what = what, .expected = "", .got = ""});
}

bool IsMachine(const char* path) {
  const std::string_view name = path != nullptr ? path : "";
  return name == kName || name.ends_with(std::string("/") + kName);
}

}  // namespace

StatusOr<std::string> UnpackBundle(const std::string& bytes,
                                   const std::string& where) {
  const std::unique_ptr<archive, FreeReader> reader(archive_read_new());
  archive* a = reader.get();
  archive_read_support_filter_gzip(a);
  archive_read_support_filter_zstd(a);
  archive_read_support_filter_xz(a);
  archive_read_support_format_tar(a);
  if (archive_read_open_memory(a, bytes.data(), bytes.size()) != ARCHIVE_OK) {
    return Bad(where, "neither JSON nor a tar archive");
  }
  archive_entry* entry = nullptr;
  for (int n = 0; n < 10000; ++n) {
    if (archive_read_next_header(a, &entry) != ARCHIVE_OK) break;
    if (!IsMachine(archive_entry_pathname(entry))) continue;
    std::string text;
    std::string piece(65536, '\0');
    while (text.size() < kMaxText) {
      const la_ssize_t got = archive_read_data(a, piece.data(), piece.size());
      if (got < 0) return Bad(where, "machine.json is damaged");
      if (got == 0) return text;
      text.append(piece, 0, static_cast<size_t>(got));
    }
    return Bad(where, "machine.json is larger than 64 MiB");
  }
  return Bad(where, "no machine.json in it");
}

StatusOr<std::string> PackBundle(const std::string& text,
                                 const std::string& name) {
  const std::unique_ptr<archive, FreeWriter> writer(archive_write_new());
  archive* a = writer.get();
  if (name.ends_with(".zst")) archive_write_add_filter_zstd(a);
  if (name.ends_with(".gz")) archive_write_add_filter_gzip(a);
  archive_write_set_format_pax_restricted(a);
  std::string bytes(text.size() + (size_t{1} << 16), '\0');
  size_t n_used = 0;
  const std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
  archive_entry_set_pathname(entry.get(), kName);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(text.size()));
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0644);
  const bool is_fine = archive_write_open_memory(a, bytes.data(), bytes.size(),
                                                 &n_used) == ARCHIVE_OK &&
                       archive_write_header(a, entry.get()) == ARCHIVE_OK &&
                       archive_write_data(a, text.data(), text.size()) ==
                           static_cast<la_ssize_t>(text.size()) &&
                       archive_write_close(a) == ARCHIVE_OK;
  if (!is_fine) {
    return MakeError(kSysOutOfMemory, {.where = name,
                                       .what = "the archive does not fit",
                                       .expected = "",
                                       .got = ""});
  }
  bytes.resize(n_used);
  return bytes;
}

}  // namespace belay::doctor
