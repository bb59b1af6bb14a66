// SPDX-License-Identifier: Apache-2.0
// Prefill and decode of llama.cpp in tokens a second, as one line of JSON; what
// `belay bench --prefill P --steps D --repetitions 1` does.
//
//   node speed_llama_cpp.mjs MODEL.gguf TOKENS.json P D THREADS BATCH
//
// BATCH is how many sequences decode together in a test of its own; 0: none.
import { readFileSync } from "node:fs";
import { LlamaCpp } from "./llama_cpp.mjs";

const [file, tokensFile, prefill, decode, threads, batch] =
  process.argv.slice(2);
const tokens = JSON.parse(readFileSync(tokensFile));
const nPrefill = Number(prefill);
const nDecode = Number(decode);
const nBatch = Number(batch);
const kWarmUpSteps = 2;

const peer = await LlamaCpp.open(file, {
  threads: Number(threads),
  contextSize: Math.max(nPrefill, nDecode + kWarmUpSteps + 1) + 64,
  sequences: Math.max(1, nBatch),
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
const rates = { prefill: prefillRate, decode: decodeRate };
if (nBatch > 0) {
  for (let i = 0; i < nBatch; ++i) peer.context.disposeSequence(i);
  let at = 0;
  // Each sequence decodes a part of its own of the tokens.
  const stepAll = () => peer.step(at, Array.from({ length: nBatch },
    (_, i) => tokens[(i * 61 + at) % tokens.length])).then(() => ++at);
  for (let i = 0; i <= kWarmUpSteps; ++i) await stepAll();
  const nSteps = Math.max(1, Math.ceil(nDecode / 4));
  rates.batch = nBatch * await rateOf(nSteps, async () => {
    for (let i = 0; i < nSteps; ++i) await stepAll();
  });
}
console.log(JSON.stringify(rates));
process.exit(0);
