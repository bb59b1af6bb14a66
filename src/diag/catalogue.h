// SPDX-License-Identifier: Apache-2.0
// The catalogue: what each id means, why it happens and what to do, in two
// languages. The rules of a file are data/catalogue/schema.json, told in
// docs/catalogue.md.
#ifndef BELAY_DIAG_CATALOGUE_H_
#define BELAY_DIAG_CATALOGUE_H_

#include <cstdint>
#include <optional>
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
  kCode,     // error codes of CANN, its driver and torch_npu
  kEnv,      // an environment variable, a real one or a wrong name
  kIssue,    // a known problem of named versions, from a public report
  kTable,    // facts in rows: which version goes with which, ...
};
enum class Severity : uint8_t { kError, kWarning, kInfo };

std::string_view NameOf(Kind kind);          // "error", "pitfall", ...
std::string_view NameOf(Severity severity);  // "error", "warning", "info"

// One code that a component returns or prints.
struct Code {
  std::string component;  // "acl", "runtime", "hccl", ...: who counts it
  std::string code;       // "507034", "-8005", "0x80e01801", "EI0006"
  std::string symbol;     // "ACL_ERROR_RT_VECTOR_CORE_TIMEOUT"; may be empty
  Text title;             // what this one says; empty = as the entry
};

// What is known about an environment variable.
struct Variable {
  // real: read by who `reader` says. limited: real, but only where `reader`
  // says. deprecated: real, with a date. foreign: of a program outside the
  // Ascend stack. wrong: nobody reads it.
  enum class Status : uint8_t {
    kReal,
    kLimited,
    kDeprecated,
    kForeign,
    kWrong
  };
  std::string name;
  Status status = Status::kReal;
  std::string reader;                  // "CANN log", "HCCL", "torch_npu", ...
  std::string values;                  // the legal ones, in words
  std::string fallback;                // what holds when it is not set
  std::vector<std::string> allowed;    // every legal value, if they are few
  std::vector<int64_t> range;          // smallest and largest, or empty
  std::string instead;                 // the right name, if this is not it
  std::vector<std::string> conflicts;  // variables that must not be set too
};

std::string_view NameOf(Variable::Status status);  // "real", "wrong", ...

// Facts in rows; the meaning of the columns is in the entry's texts.
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // each as long as columns
};

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
  std::vector<std::string> fixed_in;  // "vllm-ascend 0.23.0", ...
  std::vector<Code> codes;            // kCode: the codes that this explains
  std::vector<std::string> names;     // what else people call it, letter by
                                      // letter: variables, operators, files
  std::vector<std::string> keywords;  // words and log texts for the search
  std::vector<std::string> see;       // ids of related entries
  std::optional<Variable> variable;   // kEnv only
  std::optional<Table> table;         // kTable only
};

// Which of the program's own files to read.
enum class Part : uint8_t {
  kErrors,  // errors/: enough to print a failed Status; quick
  kAll,
};

class Catalogue {
 public:
  // The entries that are part of the program. Cannot fail in a program whose
  // tests pass; a Status all the same, because a data file is input.
  static StatusOr<Catalogue> LoadEmbedded(Part part = Part::kAll);

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
