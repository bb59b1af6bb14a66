// SPDX-License-Identifier: Apache-2.0
// Where the prompts, levels and goals of a load test come from.
#ifndef BELAY_TOOLKIT_LOADTEST_PROMPTS_H_
#define BELAY_TOOLKIT_LOADTEST_PROMPTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "toolkit/loadtest/plan.h"

namespace belay::loadtest {

// Lines of JSON: a string, {"prompt": "..."}, or {"messages": [...]}, the
// latter two with an optional "max_tokens". Error: LOAD-002 with the line.
StatusOr<std::vector<Prompt>> ParsePrompts(std::string_view jsonl,
                                           const std::string& where);

struct Shape {
  int32_t n_prompt = 0;  // tokens, about
  int32_t n_answer = 0;
};
// "512:128". Error: ARG-001.
StatusOr<Shape> ParseShape(std::string_view text);

// `n` different prompts of about shape.n_prompt tokens, the same for the same
// seed: common English words, each first word its own, so that no prefix cache
// helps.
std::vector<Prompt> MakePrompts(const Shape& shape, int n, uint64_t seed);

// What is asked when nothing is given: short questions.
std::vector<Prompt> DefaultPrompts();

// "1,4,16". Error: ARG-001.
StatusOr<std::vector<Level>> ParseConcurrency(std::string_view text);

// "ttft_ms=500,tpot_ms=50,e2e_ms=9000,share=0.95". Error: ARG-001.
StatusOr<Slo> ParseSlo(std::string_view text);

}  // namespace belay::loadtest

#endif  // BELAY_TOOLKIT_LOADTEST_PROMPTS_H_
