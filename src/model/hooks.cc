// SPDX-License-Identifier: Apache-2.0
#include "model/hooks.h"

namespace belay::model {

void Hooks::Hidden(int, TensorView) {}
bool Hooks::ForceExperts(int, TensorView) { return false; }
TensorView Hooks::WantRouteScores(int) { return {}; }
void Hooks::Routed(int, ConstTensorView, ConstTensorView) {}
TensorView Hooks::WantIndexScores(int) { return {}; }
void Hooks::Selected(int, TensorView) {}
void Hooks::Window(int, ConstTensorView) {}
void Hooks::Compressed(int, bool, ConstTensorView) {}

}  // namespace belay::model
