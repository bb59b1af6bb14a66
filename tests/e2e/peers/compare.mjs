// SPDX-License-Identifier: Apache-2.0
// Belay and llama.cpp on the same GGUF file and tokens: the next-token
// distributions of every position, and the perplexity. Called by ./run.
//
//   node compare.mjs FILE.gguf --tokens-file IDS.json --window N
//     [--belay PROGRAM] [--max-kl OFFICIAL,EXACT] [--max-perplexity-share S]
//     [--ours WRONG.gguf]
//
// --ours runs Belay on another file than llama.cpp: a wrong one must leave the
// bound. Prints the figures and leaves with 3 when one is beyond its bound.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LlamaCpp, logSoftmax } from "../../../scripts/peers/llama_cpp.mjs";

const argv = process.argv.slice(2);
const option = (name, otherwise) => {
  const at = argv.indexOf(name);
  return at < 0 ? otherwise : argv.splice(at, 2)[1];
};
const belay = option("--belay", "build/release/bin/belay");
const tokensFile = option("--tokens-file");
const window = Number(option("--window", "128"));
const bounds = option("--max-kl", "0.05,0.05").split(",").map(Number);
const maxKl = { official: bounds[0], exact: bounds[1] };
const maxShare = Number(option("--max-perplexity-share", "0.02"));
const file = argv[0];
const oursFile = option("--ours", file);
const tokens = JSON.parse(readFileSync(tokensFile));
const folder = mkdtempSync(join(tmpdir(), "belay-peers-"));

function windows() {
  const n = Math.floor(tokens.length / window);
  return Array.from({ length: n }, (_, w) =>
    tokens.slice(w * window, (w + 1) * window));
}

// [positions] of [vocabulary] log-probabilities.
function ofBelay(ids, numerics) {
  const out = join(folder, "trace.safetensors");
  execFileSync(belay, ["trace", "--model", oursFile, "--numerics", numerics,
    "--tokens", ids.join(","), "--out", out]);
  const bytes = readFileSync(out);
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + length).toString());
  const { shape: [rows, columns], data_offsets: [begin] } = header.logits_all;
  const base = 8 + length + begin;
  return Array.from({ length: rows }, (_, r) =>
    logSoftmax(Float64Array.from({ length: columns },
      (_, c) => bytes.readFloatLE(base + 4 * (r * columns + c)))));
}

const best = (row) => row.reduce((a, v, i, all) => (v > all[a] ? i : a), 0);

// Of the second halves, as llama.cpp's own program and `belay perplexity` do:
// tokens [window / 2, window) of each window, judged by those before them.
function perplexityOf(rows, ids, sum) {
  for (let i = window >> 1; i < window; ++i) {
    sum.nll -= rows[i - 1][ids[i]];
    ++sum.n;
  }
}

function belayPerplexity() {
  const tokensOut = join(folder, "ids.json");
  writeFileSync(tokensOut, JSON.stringify(tokens));
  return JSON.parse(execFileSync(belay, ["perplexity", "--model", oursFile,
    "--tokens-file", tokensOut, "--window", String(window), "--json"],
  { encoding: "utf8" })).perplexity;
}

async function compare() {
  const peer = await LlamaCpp.open(file, { threads: 1, contextSize: window + 64 });
  const kl = { official: [], exact: [] };
  const sum = { nll: 0, n: 0 };
  let same = 0;
  for (const ids of windows()) {
    const theirs = await peer.logProbabilities(ids);
    peer.clear();
    perplexityOf(theirs, ids, sum);
    for (const numerics of Object.keys(kl)) {
      const ours = ofBelay(ids, numerics);
      theirs.forEach((row, position) => {
        let divergence = 0;
        row.forEach((logp, id) => {
          divergence += Math.exp(logp) * (logp - ours[position][id]);
        });
        kl[numerics].push(divergence);
        if (numerics === "official" && best(row) === best(ours[position])) ++same;
      });
    }
  }
  return { kl, same, theirs: Math.exp(sum.nll / sum.n), ours: belayPerplexity() };
}

const mean = (v) => v.reduce((a, b) => a + b, 0) / v.length;
const median = (v) => [...v].sort((a, b) => a - b)[v.length >> 1];

try {
  const { kl, same, theirs, ours } = await compare();
  let ok = true;
  for (const [numerics, all] of Object.entries(kl)) {
    const fits = mean(all) <= maxKl[numerics];
    ok &&= fits;
    console.log(`  ${numerics}: KL mean ${mean(all).toFixed(5)} (bound ${maxKl[numerics]}` +
      `${fits ? "" : ": BEYOND"}), median ${median(all).toFixed(5)}, largest ` +
      `${Math.max(...all).toFixed(3)}, ${all.length} positions`);
  }
  const share = Math.abs(ours / theirs - 1);
  ok &&= share <= maxShare;
  console.log(`  the same first token at ${same} of ${kl.official.length}; ` +
    `perplexity: belay ${ours.toFixed(4)}, llama.cpp ${theirs.toFixed(4)}, ` +
    `${(100 * share).toFixed(2)} % apart (bound ${100 * maxShare} %)`);
  process.exitCode = ok ? 0 : 3;
} finally {
  rmSync(folder, { recursive: true });
}
process.exit();
