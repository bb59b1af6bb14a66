// SPDX-License-Identifier: Apache-2.0
// Belay beside llama.cpp on the same GGUF file: pairs of runs, one program after
// the other in changing order, and the ratio within each pair. Where the folder
// FILE (without .gguf) holds the same model in the official format, that runs in
// the same rounds, at official numerics and with int8 activations. Called by
// scripts/bench_peers, which says the options.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

function options(argv) {
  const all = { belay: "build/release/bin/belay", pairs: 5, threads: 2,
    prefill: 512, decode: 128, batch: 0, under: "", json: "", files: [] };
  for (let i = 0; i < argv.length; ++i) {
    const name = argv[i].replace(/^--/, "");
    if (!argv[i].startsWith("--")) {
      all.files.push(argv[i]);
    } else if (name in all && name !== "files" && i + 1 < argv.length) {
      all[name] = typeof all[name] === "number" ? Number(argv[++i]) : argv[++i];
    } else {
      console.error(`bench_peers: unknown option ${argv[i]}`);
      process.exit(2);
    }
  }
  return all;
}

const args = options(process.argv.slice(2));

// Runs a program, under `--under CMD` where given; its last line is JSON.
function run(program, parameters) {
  const command = [...args.under.split(" ").filter(Boolean), program, ...parameters];
  const out = execFileSync(command[0], command.slice(1), { encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"] });
  return out;
}

function runBelay(model, tokens, more = []) {
  const json = JSON.parse(run(args.belay, ["bench", "--model", model, "--json",
    "--threads", args.threads, "--prefill", args.prefill, "--steps", args.decode,
    "--repetitions", 1, "--tokens-file", tokens, ...more].map(String)));
  const of = (test) => json.results.find((r) => r.test === test);
  const rates = {
    prefill: of("prefill").tokens_per_second.median,
    decode: of("decode").tokens_per_second.median,
    bandwidth: of("decode").bandwidth_gb_per_second.median,
    share: of("decode").bandwidth_share.median,
  };
  if (args.batch > 0) {
    const steps = Math.max(1, Math.ceil(args.decode / 4));
    const batch = JSON.parse(run(args.belay, ["bench", "--model", model, "--json",
      "--threads", args.threads, "--prefill", 0, "--steps", steps, "--batch",
      args.batch, "--repetitions", 1, "--tokens-file", tokens, ...more]
      .map(String)));
    rates.batch = batch.results[0].tokens_per_second.median;
  }
  return rates;
}

function runLlamaCpp(file, tokens) {
  const script = new URL("speed_llama_cpp.mjs", import.meta.url).pathname;
  const out = run(process.execPath, [script, file, tokens, args.prefill,
    args.decode, args.threads, args.batch].map(String));
  return JSON.parse(out.trim().split("\n").at(-1));
}

function spread(values) {
  const v = [...values].sort((a, b) => a - b);
  const median = (v[(v.length - 1) >> 1] + v[v.length >> 1]) / 2;
  return { median, min: v[0], max: v.at(-1) };
}

// Random ids below the smallest vocabulary that is measured; the same always.
function writeTokens(folder) {
  let state = 12345;
  const next = () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return 300 + state % 3700;
  };
  const file = join(folder, "tokens.json");
  const n = Math.max(args.prefill, args.decode + 8);
  writeFileSync(file, JSON.stringify(Array.from({ length: n }, next)));
  return file;
}

// What runs in each round, by name; llama.cpp is what the others are divided by.
function sidesOf(file, tokens) {
  const sides = { "belay": () => runBelay(file, tokens) };
  const official = file.replace(/\.gguf$/, "");
  if (official !== file && existsSync(join(official, "config.json"))) {
    sides["belay official"] = () => runBelay(official, tokens);
    sides["belay int8"] =
      () => runBelay(official, tokens, ["--activations", "int8"]);
  }
  sides["llama.cpp"] = () => runLlamaCpp(file, tokens);
  return sides;
}

function measure(file, tokens) {
  const sides = sidesOf(file, tokens);
  const rounds = [];
  for (let i = 0; i < args.pairs; ++i) {
    const round = {};
    const order = Object.keys(sides);
    for (const side of i % 2 ? order.reverse() : order) {
      round[side] = sides[side]();
      const rates = ["prefill", "decode", "batch"]
        .filter((test) => test in round[side])
        .map((test) => `${test} ${round[side][test].toFixed(1)}`);
      console.error(`round ${i + 1}/${args.pairs}, ${side}: ${rates.join(", ")}`);
    }
    rounds.push(round);
  }
  return rounds;
}

const text = (s, digits) =>
  `${s.median.toFixed(digits)} (${s.min.toFixed(digits)} - ${s.max.toFixed(digits)})`;

function report(file, rounds) {
  const result = { file, threads: args.threads, pairs: args.pairs, sides: {} };
  console.log(`${file}, ${args.threads} threads, ${args.pairs} rounds: ` +
    "median (smallest - largest)");
  const ours = Object.keys(rounds[0]).filter((side) => side !== "llama.cpp");
  for (const side of [...ours, "llama.cpp"].filter((s) => s in rounds[0])) {
    const of = (value) => spread(rounds.map(value));
    const figures = {};
    for (const test of ["prefill", "decode", "batch"]) {
      if (!(test in rounds[0][side])) continue;
      figures[test] = of((r) => r[side][test]);
      let line = `  ${side}: ${test} ${args[test]} ${text(figures[test], 1)} tok/s`;
      if (side !== "llama.cpp") {
        figures[test].ratio = of((r) => r[side][test] / r["llama.cpp"][test]);
        line += `, ${text(figures[test].ratio, 2)} x llama.cpp`;
      }
      console.log(line);
    }
    if (side !== "llama.cpp") {
      figures.bandwidth_gb_per_second = of((r) => r[side].bandwidth);
      figures.bandwidth_share = of((r) => r[side].share);
      console.log(`    memory read beside it: ` +
        `${text(figures.bandwidth_gb_per_second, 1)} GB/s; decode is ` +
        `${text(figures.bandwidth_share, 2)} of it`);
    }
    result.sides[side] = figures;
  }
  return result;
}

const folder = mkdtempSync(join(tmpdir(), "belay-peers-"));
try {
  const tokens = writeTokens(folder);
  const results = args.files.map((file) => report(file, measure(file, tokens)));
  if (args.json) writeFileSync(args.json, JSON.stringify(results, null, 2) + "\n");
} finally {
  rmSync(folder, { recursive: true });
}
