// SPDX-License-Identifier: Apache-2.0
// Errors and catalogue entries as people and programs read them.
#ifndef BELAY_DIAG_RENDER_H_
#define BELAY_DIAG_RENDER_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/error.h"
#include "diag/catalogue.h"
#include "diag/lang.h"

namespace belay::diag {

struct RenderOptions {
  Lang lang = Lang::kEn;
  bool color = false;  // ANSI colours
  int width = 80;      // columns of the hint lines; the first line is one line
};

// What a user sees of a failed status, newline at the end:
//
//   error CKPT-001: model.safetensors: the file is shorter than its tensors
//   (expected 64 bytes, got 12 bytes)            [one line, so that grep works]
//     fix: Fetch this file again ...
//     more: belay explain CKPT-001
//
// An id that the catalogue lacks and a status without id still give their
// message. Control characters in facts, which may come from a hostile file, are
// written as \xNN.
std::string RenderError(const Status& status, const Catalogue& catalogue,
                        const RenderOptions& options);

// {id, severity, where, what, expected, got, title, fix}: all keys always
// there, "" = unknown. Title and fix are in `lang`.
nlohmann::ordered_json ErrorToJson(const Status& status,
                                   const Catalogue& catalogue, Lang lang);

// The page of `belay explain`, newline at the end.
std::string RenderEntry(const Entry& entry, const RenderOptions& options);

// "507034 ACL_ERROR_RT_VECTOR_CORE_TIMEOUT (runtime): vector core timeout"; the
// title of `entry` where the code has none of its own.
std::string CodeLine(const Code& code, const Entry& entry, Lang lang);

// {id, area, kind, severity, lang, title, cause, fix, check, sources, versions,
// socs, fixed_in, codes, names, see, variable, table}, texts in `lang`; all
// keys always there, variable and table null where the entry has none.
nlohmann::ordered_json EntryToJson(const Entry& entry, Lang lang);

// Text with control characters written as \xNN; newline and tab too.
std::string EscapeControls(std::string_view text);

}  // namespace belay::diag

#endif  // BELAY_DIAG_RENDER_H_
