// SPDX-License-Identifier: Apache-2.0
#include "diag/catalogue.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/error_ids.h"
#include "base/file.h"
#include "diag/catalogue_parse.h"
#include "diag/distance.h"
#include "diag/embedded.h"

namespace belay::diag {
namespace {

bool ById(const Entry& a, const Entry& b) { return a.id < b.id; }

}  // namespace

std::string_view NameOf(Kind kind) {
  static constexpr std::string_view kNames[] = {"error", "pitfall", "code",
                                                "env",   "issue",   "table"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view NameOf(Variable::Status status) {
  static constexpr std::string_view kNames[] = {"real", "limited", "deprecated",
                                                "foreign", "wrong"};
  return kNames[static_cast<size_t>(status)];
}

std::string_view NameOf(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kInfo:
      return "info";
  }
  return "";
}

StatusOr<Catalogue> Catalogue::LoadEmbedded(Part part) {
  Catalogue catalogue;
  for (const CatalogueFile& file : EmbeddedCatalogueFiles()) {
    if (part == Part::kErrors && !file.name.starts_with("errors/")) continue;
    BELAY_RETURN_IF_ERROR(
        catalogue.AddFile(file.text, "catalogue/" + std::string(file.name)));
  }
  return catalogue;
}

Status Catalogue::AddFile(std::string_view text, const std::string& where) {
  BELAY_ASSIGN_OR_RETURN(std::vector<Entry> added,
                         ParseCatalogueFile(text, where));
  std::sort(added.begin(), added.end(), ById);
  for (size_t i = 0; i < added.size(); ++i) {
    if (Find(added[i].id) != nullptr ||
        (i > 0 && added[i - 1].id == added[i].id)) {
      return MakeError(kDiagBadCatalogue, {.where = where,
                                           .what = "",
                                           .expected = "each id once",
                                           .got = added[i].id + " again"});
    }
  }
  const auto middle = static_cast<std::ptrdiff_t>(entries_.size());
  std::move(added.begin(), added.end(), std::back_inserter(entries_));
  std::inplace_merge(entries_.begin(), entries_.begin() + middle,
                     entries_.end(), ById);
  return absl::OkStatus();
}

Status Catalogue::AddFolder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> paths;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() == ".json") {
      paths.push_back(it->path().string());
    }
  }
  if (error) {
    return MakeError(
        kSysUnreadable,
        {.where = folder, .what = error.message(), .expected = "", .got = ""});
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    BELAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    BELAY_RETURN_IF_ERROR(AddFile(text, path));
  }
  return absl::OkStatus();
}

const Entry* Catalogue::Find(std::string_view id) const {
  const std::string wanted = Upper(id);
  const auto found =
      std::lower_bound(entries_.begin(), entries_.end(), wanted,
                       [](const Entry& entry, const std::string& key) {
                         return entry.id < key;
                       });
  return found != entries_.end() && found->id == wanted ? &*found : nullptr;
}

std::vector<std::string> Catalogue::Nearest(std::string_view id,
                                            size_t n) const {
  // No id is longer than a few letters; a pasted page is not a typing error.
  const std::string wanted = Upper(id.substr(0, 64));
  std::vector<std::pair<size_t, std::string>> near;
  for (const Entry& entry : entries_) {
    const size_t distance = EditDistance(wanted, entry.id);
    if (distance <= 3) near.emplace_back(distance, entry.id);
  }
  std::sort(near.begin(), near.end());
  std::vector<std::string> ids;
  for (size_t i = 0; i < std::min(n, near.size()); ++i) {
    ids.push_back(near[i].second);
  }
  return ids;
}

}  // namespace belay::diag
