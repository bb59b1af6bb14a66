#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Runs one GGUF file in llama.cpp and in Belay and compares the next-token
// distributions of every position. Optional: needs npm and the network once.
//
//   npm install --prefix build/peers node-llama-cpp@3.22.1
//   scripts/gguf_peer.mjs FILE.gguf [--belay build/release/bin/belay]
//     [--peers build/peers] [--tokens 5,7,9] [--max-kl 0.05]
//
// Leaves with 1 when the mean KL divergence is above the bound. Both engines
// multiply int8 activations, each in its own way, so that routing near a tie
// differs; Belay runs in exact numerics here, which is closest to the weights.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const args = process.argv.slice(2);
const option = (name, otherwise) => {
  const at = args.indexOf(name);
  return at < 0 ? otherwise : args.splice(at, 2)[1];
};
const belay = option("--belay", "build/release/bin/belay");
const peers = option("--peers", "build/peers");
const tokens = option("--tokens", "5,7,9,100,200,300,17,18,19,33,400,7,120,77,90,30");
const maxKl = Number(option("--max-kl", "0.05"));
const file = args[0];
if (file === undefined) {
  console.error("usage: scripts/gguf_peer.mjs FILE.gguf");
  process.exit(2);
}

// [positions][vocabulary] log-probabilities.
function ofBelay() {
  const folder = mkdtempSync(join(tmpdir(), "gguf-peer-"));
  const out = join(folder, "trace.safetensors");
  execFileSync(belay, ["trace", "--model", file, "--numerics", "exact",
    "--tokens", tokens, "--out", out]);
  const bytes = readFileSync(out);
  rmSync(folder, { recursive: true });
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + length).toString());
  const { shape: [rows, columns], data_offsets: [begin] } = header.logits_all;
  const base = 8 + length + begin;
  return Array.from({ length: rows }, (_, r) => {
    const row = Float64Array.from({ length: columns },
      (_, c) => bytes.readFloatLE(base + 4 * (r * columns + c)));
    const max = row.reduce((a, b) => Math.max(a, b));
    const sum = row.reduce((a, b) => a + Math.exp(b - max), 0);
    return row.map((v) => v - max - Math.log(sum));
  });
}

async function ofLlamaCpp() {
  const entry = resolve(peers, "node_modules/node-llama-cpp/dist/index.js");
  const { getLlama } = await import(pathToFileURL(entry));
  const llama = await getLlama({ gpu: false, build: "never", logLevel: "error" });
  const model = await llama.loadModel({ modelPath: resolve(file), gpuLayers: 0 });
  const context = await model.createContext({ contextSize: 512, threads: 1 });
  const ids = tokens.split(",").map(Number);
  const results = await context.getSequence().controlledEvaluate(
    ids.map((id) => [id, { generateNext: { probabilities: true } }]));
  return results.map((r) => r.next.probabilities);  // id -> probability
}

const theirs = await ofLlamaCpp();
const ours = ofBelay();
let sum = 0;
let agree = 0;
theirs.forEach((probabilities, position) => {
  let best = [-1, 0];
  for (const [id, p] of probabilities) {
    if (p > 0) sum += p * (Math.log(p) - ours[position][id]);
    if (p > best[1]) best = [id, p];
  }
  const top = ours[position].reduce((a, v, i, all) => (v > all[a] ? i : a), 0);
  if (top === best[0]) ++agree;
});
const kl = sum / theirs.length;
console.log(`${file}: ${theirs.length} positions, mean KL ${kl.toFixed(5)}, ` +
  `the same first token at ${agree}`);
process.exit(kl <= maxKl ? 0 : 1);
