// SPDX-License-Identifier: Apache-2.0
// Models whose weights stand as the kernels read them (checkpoint/pack).
#ifndef BELAY_APPS_BELAY_PACK_PACK_H_
#define BELAY_APPS_BELAY_PACK_PACK_H_

#include <cstdint>
#include <functional>
#include <string>

#include "apps/belay/shell/context.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/pack/pack_file.h"
#include "ops/backend.h"

namespace belay::apps {

// Whether a path that names a model is a folder of `belay pack`.
bool IsPacked(const std::string& folder);
std::string PackPath(const std::string& folder);

// Whether `backend` reads this file's layout: PACK-004 when it packs nothing,
// PACK-003 when it packs otherwise.
Status CheckLayout(const checkpoint::PackFile& file,
                   const ops::Backend& backend);

struct Packed {
  int64_t n_tensors = 0;
  int64_t n_packed = 0;
  uint64_t bytes = 0;  // of the file
};

// Writes the checkpoint's tensors to `path`, the linears as `backend` packs
// them. `progress(done, total)` counts tensors and stops the work with an
// error. Errors: BACK-001 when the back end packs nothing, those of binding,
// SYS-002.
StatusOr<Packed> PackCheckpoint(
    const checkpoint::Checkpoint& checkpoint, ops::Backend& backend,
    ThreadPool* pool, const std::string& path,
    const std::function<Status(int64_t done, int64_t total)>& progress);

// `belay inspect` of such a folder: what is in it, and every byte checked.
StatusOr<ExitCode> InspectPack(const std::string& folder,
                               const Context& context);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_PACK_PACK_H_
