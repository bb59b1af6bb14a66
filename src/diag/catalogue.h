// SPDX-License-Identifier: Apache-2.0
// The catalogue: what each id means, why it happens and what to do, in two
// languages. The rules of a file are data/catalogue/schema.json, told in
// docs/catalogue.md.
#ifndef BELAY_DIAG_CATALOGUE_H_
#define BELAY_DIAG_CATALOGUE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "diag/lang.h"

namespace belay::diag {

// One text in both languages, UTF-8.
struct Text {
  std::string en;
  std::string zh;
  const std::string& in(Lang lang) const { return lang == Lang::kZh ? zh : en; }
  bool empty() const { return en.empty(); }
};

enum class Kind : uint8_t {
  kError,    // our code emits it (base/error_ids.h)
  kPitfall,  // a known way to fall, found by rules (doctor, logs, lint, ...)
};
enum class Severity : uint8_t { kError, kWarning, kInfo };

std::string_view NameOf(Kind kind);          // "error", "pitfall"
std::string_view NameOf(Severity severity);  // "error", "warning", "info"

struct Entry {
  std::string id;    // "CKPT-001"
  std::string area;  // "CKPT"
  Kind kind = Kind::kError;
  Severity severity = Severity::kError;
  Text title;  // one line, a sentence fragment
  Text cause;
  Text fix;
  Text check;                         // how to look for oneself; may be empty
  std::vector<std::string> sources;   // URLs, documents, manual pages
  std::vector<std::string> versions;  // "CANN >= 8.0", ...; empty = all
  std::vector<std::string> socs;      // "Ascend910B", ...; empty = all
};

class Catalogue {
 public:
  // The entries that are part of the program. Cannot fail in a program whose
  // tests pass; a Status all the same, because a data file is input.
  static StatusOr<Catalogue> LoadEmbedded();

  // Adds the entries of one file's text. `where` names it in errors. DIAG-001
  // when it breaks a rule of the schema or an id is known already; then no
  // entry of it is added.
  Status AddFile(std::string_view text, const std::string& where);

  // Adds every *.json of `folder`, in the order of their names. SYS-001 or
  // DIAG-001; the files before the faulty one stay added.
  Status AddFolder(const std::string& folder);

  // The entry with this id, capitals or not; nullptr when there is none. Valid
  // until entries are added.
  const Entry* Find(std::string_view id) const;

  // All entries, sorted by id.
  std::span<const Entry> entries() const { return entries_; }

  // Up to `n` ids that are most like `id`, the nearest first; those too far
  // away to be meant are left out.
  std::vector<std::string> Nearest(std::string_view id, size_t n) const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace belay::diag

#endif  // BELAY_DIAG_CATALOGUE_H_
