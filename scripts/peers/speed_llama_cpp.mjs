// SPDX-License-Identifier: Apache-2.0
// Prefill and decode of llama.cpp in tokens a second, as one line of JSON; what
// `belay bench --prefill P --steps D --repetitions 1` does.
//
//   node speed_llama_cpp.mjs MODEL.gguf TOKENS.json P D THREADS
import { readFileSync } from "node:fs";
import { LlamaCpp } from "./llama_cpp.mjs";

const [file, tokensFile, prefill, decode, threads] = process.argv.slice(2);
const tokens = JSON.parse(readFileSync(tokensFile));
const nPrefill = Number(prefill);
const nDecode = Number(decode);
const kWarmUpSteps = 2;

const peer = await LlamaCpp.open(file, {
  threads: Number(threads),
  contextSize: Math.max(nPrefill, nDecode + kWarmUpSteps + 1) + 64,
});

async function rateOf(n, work) {
  const start = process.hrtime.bigint();
  await work();
  return n / (Number(process.hrtime.bigint() - start) / 1e9);
}

async function prefillOnce() {
  for (let first = 0; first < nPrefill; first += 512) {
    await peer.decode(first, tokens.slice(first, Math.min(first + 512, nPrefill)));
  }
}

await prefillOnce();  // warms up
peer.clear();
const prefillRate = await rateOf(nPrefill, prefillOnce);
peer.clear();

let position = 0;
const step = () => peer.decode(position, [tokens[position++ % tokens.length]]);
for (let i = 0; i <= kWarmUpSteps; ++i) await step();
const decodeRate = await rateOf(nDecode, async () => {
  for (let i = 0; i < nDecode; ++i) await step();
});
console.log(JSON.stringify({ prefill: prefillRate, decode: decodeRate }));
process.exit(0);
