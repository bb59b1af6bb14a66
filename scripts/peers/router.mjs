// SPDX-License-Identifier: Apache-2.0
// The router beside ONNX Runtime's TopK + GatherElements and beside a sort, one
// thread each, in pairs. Called by scripts/bench_peers.
//
//   node router.mjs [--bench build/release/bench/gate_bench] [--pairs 5]
//     [--under "CMD"]
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { routerModel } from "./onnx.mjs";

const argv = process.argv.slice(2);
const option = (name, otherwise) => {
  const at = argv.indexOf(name);
  return at < 0 ? otherwise : argv.splice(at, 2)[1];
};
const bench = option("--bench", "build/release/bench/gate_bench");
const nPairs = Number(option("--pairs", "5"));
const under = option("--under", "").split(" ").filter(Boolean);
const kCopies = 256;
const kGoal = 2.3;
const kCases = [[384, 6, 1], [16, 2, 1], [384, 6, 512], [16, 2, 512]];

const require = createRequire(resolve("build/peers") + "/");
const ort = require("onnxruntime-node");

function run(command) {
  const all = [...under, ...command];
  return execFileSync(all[0], all.slice(1), { encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"] });
}

// Microseconds of one routing of all tokens, by benchmark name.
function ours() {
  const json = JSON.parse(run([bench, "--benchmark_format=json",
    "--benchmark_filter=Select|Sort", "--benchmark_min_time=0.1"]));
  return Object.fromEntries(json.benchmarks.map((b) => [b.name, b.real_time / 1e3]));
}

async function theirs([experts, chosen, tokens]) {
  const session = await ort.InferenceSession.create(
    routerModel({ experts, chosen, tokens, copies: kCopies }),
    { intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: "sequential",
      graphOptimizationLevel: "all" });
  const feeds = { scores: new ort.Tensor("float32",
    Float32Array.from({ length: tokens * experts },
      (_, i) => Math.abs(Math.sin(1 + i * 0.7391) * 43758.5453) % 1),
    [tokens, experts]) };
  await session.run(feeds);  // warms up
  let best = Infinity;
  const start = process.hrtime.bigint();
  let n = 0;
  while (n < 3 || Number(process.hrtime.bigint() - start) < 2e8) {
    const before = process.hrtime.bigint();
    await session.run(feeds);
    best = Math.min(best, Number(process.hrtime.bigint() - before));
    ++n;
  }
  await session.release();
  return best / 1e3 / kCopies;
}

// Called again under --under, so that the runtime is measured as we are.
if (argv[0] === "theirs") {
  const results = [];
  for (const c of kCases) results.push(await theirs(c));
  console.log(JSON.stringify(results));
  process.exit(0);
}

const samples = kCases.map(() => ({ ours: [], sort: [], onnx: [] }));
for (let i = 0; i < nPairs; ++i) {
  const sides = [
    () => {
      const us = ours();
      kCases.forEach((c, j) => {
        samples[j].ours.push(us[`Select/${c.join("/")}`]);
        samples[j].sort.push(us[`Sort/${c.join("/")}`]);
      });
    },
    () => {
      const us = JSON.parse(run([process.execPath,
        new URL(import.meta.url).pathname, "theirs"]).trim().split("\n").at(-1));
      us.forEach((v, j) => samples[j].onnx.push(v));
    }];
  for (const side of i % 2 ? sides.reverse() : sides) side();
}

const median = (v) => [...v].sort((a, b) => a - b)[v.length >> 1];
let ok = true;
console.log(`router, 1 thread, ${nPairs} pairs: medians, us a step`);
kCases.forEach(([experts, chosen, tokens], j) => {
  const { ours: o, sort, onnx } = samples[j];
  const ratios = onnx.map((v, i) => v / o[i]);
  ok &&= median(ratios) >= kGoal;
  console.log(`  ${experts} experts, top ${chosen}, ${tokens} tokens: belay ` +
    `${median(o).toFixed(3)}, ONNX Runtime ${median(onnx).toFixed(3)} = ` +
    `${median(ratios).toFixed(2)} x (${Math.min(...ratios).toFixed(2)} - ` +
    `${Math.max(...ratios).toFixed(2)}), a sort ${median(sort).toFixed(3)} = ` +
    `${median(sort.map((v, i) => v / o[i])).toFixed(1)} x`);
});
console.log(`  goal ${kGoal} x ONNX Runtime: ${ok ? "met" : "MISSED"}`);
process.exit(ok ? 0 : 1);
