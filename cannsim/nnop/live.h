// SPDX-License-Identifier: Apache-2.0
// Strict mode: which descriptors and executors live, and where the program made
// them.
#ifndef BELAY_CANNSIM_NNOP_LIVE_H_
#define BELAY_CANNSIM_NNOP_LIVE_H_

namespace cannsim {

// The program made `object`, an `kind` ("aclTensor"), in a call from `caller`.
// Does nothing unless the mode is strict.
void NoteMade(const void* object, const char* kind, const void* caller);

// The program destroys it. False, after a finding, when it was destroyed before
// or never made; always true unless the mode is strict.
bool NoteGone(const void* object, const char* kind, const void* caller);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_NNOP_LIVE_H_
