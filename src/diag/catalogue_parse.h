// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_DIAG_CATALOGUE_PARSE_H_
#define BELAY_DIAG_CATALOGUE_PARSE_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "diag/catalogue.h"

namespace belay::diag {

// Reads one catalogue file and holds it to data/catalogue/schema.json. DIAG-001
// names the file, the entry and the field.
StatusOr<std::vector<Entry>> ParseCatalogueFile(std::string_view text,
                                                const std::string& where);

}  // namespace belay::diag

#endif  // BELAY_DIAG_CATALOGUE_PARSE_H_
