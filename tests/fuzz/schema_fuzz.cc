// SPDX-License-Identifier: Apache-2.0
// Any JSON as a schema: an error with an id, or a grammar in which no walk
// comes to a dead end and every finished text is JSON.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "text/chat/json.h"
#include "text/grammar/automaton.h"
#include "text/grammar/schema/schema.h"

namespace belay::text {
namespace {

// Takes the allowed byte that comes next to `wish`, upwards.
int32_t Take(Automaton& automaton, int32_t state, uint8_t wish,
             std::string* text) {
  for (int i = 0; i < 256; ++i) {
    const auto byte = static_cast<uint8_t>(wish + i);
    const int32_t next = automaton.Next(state, byte);
    if (next == Automaton::kDead) continue;
    text->push_back(static_cast<char>(byte));
    return next;
  }
  return Automaton::kDead;
}

void Walk(const std::shared_ptr<const Grammar>& grammar,
          std::string_view wishes) {
  Automaton automaton(grammar);
  int32_t state = automaton.start();
  std::string text;
  for (size_t i = 0; i < 200 && automaton.n_states() < 2000; ++i) {
    if (automaton.IsComplete(state) && !ParseJson(text).ok()) std::abort();
    if (automaton.IsFinal(state)) return;
    const char wish = wishes.empty() ? '"' : wishes[i % wishes.size()];
    state = Take(automaton, state, static_cast<uint8_t>(wish), &text);
    if (state == Automaton::kDead) std::abort();
  }
}

}  // namespace
}  // namespace belay::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  using namespace belay;
  using namespace belay::text;
  if (n_bytes > 4096) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), n_bytes);
  const size_t end = input.rfind('\n');  // behind it: the way through
  const StatusOr<JsonValue> json = ParseJson(input.substr(0, end));
  if (!json.ok()) return 0;
  const auto grammar = CompileJsonSchema(*json);
  if (!grammar.ok()) {
    if (ErrorIdOf(grammar.status()).empty()) std::abort();
    return 0;
  }
  Walk(*grammar, end == std::string_view::npos ? "" : input.substr(end + 1));
  return 0;
}
