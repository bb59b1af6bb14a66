// SPDX-License-Identifier: Apache-2.0
// The files of data/catalogue as part of the program; the definition is
// generated (cmake/embed_catalogue.cmake).
#ifndef BELAY_DIAG_EMBEDDED_H_
#define BELAY_DIAG_EMBEDDED_H_

#include <span>
#include <string_view>

namespace belay::diag {

struct CatalogueFile {
  std::string_view name;  // relative to data/catalogue: "errors/ckpt.json"
  std::string_view text;  // its bytes
};

// Sorted by name, without schema.json.
std::span<const CatalogueFile> EmbeddedCatalogueFiles();

}  // namespace belay::diag

#endif  // BELAY_DIAG_EMBEDDED_H_
