// SPDX-License-Identifier: Apache-2.0
// llama.cpp on a GGUF file, by the batches that its own programs use: tokens in,
// logits out, no sampling between them.
//
// Its threads spin at barriers, of which a step has hundreds: with other work on
// the machine it gets slower by a factor of ten and more. Measure it on a quiet
// machine, and take one thread where only its numbers matter.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

export const kPeers = "build/peers";
const kMaxBatch = 512;

export class LlamaCpp {
  // Options: threads, contextSize (tokens of a sequence), sequences.
  static async open(file, { threads, contextSize, sequences = 1 }) {
    const entry = resolve(kPeers, "node_modules/node-llama-cpp/dist/index.js");
    const { getLlama, LlamaLogLevel } = await import(pathToFileURL(entry));
    // Prebuilt or nothing; no search for GPUs.
    const llama = await getLlama({
      gpu: false, build: "never", maxThreads: threads, progressLogs: false,
      skipDownload: true, logLevel: LlamaLogLevel.error,
    });
    const model = await llama.loadModel({ modelPath: resolve(file), gpuLayers: 0 });
    const context = await model.createContext({
      contextSize, batchSize: kMaxBatch, threads, sequences,
    });
    const peer = new LlamaCpp();
    peer.llama = llama;
    peer.model = model;
    peer.context = context._ctx;
    peer.sampler = new llama._bindings.AddonSampler(model._model);
    peer.sampler.applyConfig({ temperature: 0 });
    peer.context.setThreads(threads);
    return peer;
  }

  // Runs `tokens` at positions [first, first + n), and keeps the logits of the
  // last one, or with `all` of every one. Returns their places for logits().
  async decode(first, tokens, all = false) {
    const last = tokens.length - 1;
    const wanted = all ? tokens.map((_, i) => i) : [last];
    this.context.initBatch(tokens.length);
    const places = this.context.addToBatch(
      0, first, Uint32Array.from(tokens), Uint32Array.from(wanted));
    await this.context.decodeBatch();
    return places;
  }

  // A step of the sequences 0, 1, ...: one token each, all at `position`.
  async step(position, tokens) {
    this.context.initBatch(tokens.length);
    for (const [sequence, token] of tokens.entries()) {
      this.context.addToBatch(
        sequence, position, Uint32Array.of(token), Uint32Array.of(0));
    }
    await this.context.decodeBatch();
  }

  // The logits at a place of the last decode(), by token id.
  async logits(place) {
    const [, , , flat] = await this.context.sampleToken(
      place, this.sampler, false, false, true);
    const logits = new Float64Array(flat.length / 2);
    for (let i = 0; i < flat.length; i += 2) logits[flat[i]] = flat[i + 1];
    return logits;
  }

  // Log-probabilities of all positions of a prompt, one Float64Array each.
  async logProbabilities(tokens) {
    const rows = [];
    for (let first = 0; first < tokens.length; first += kMaxBatch) {
      const part = tokens.slice(first, first + kMaxBatch);
      for (const place of await this.decode(first, part, true)) {
        rows.push(logSoftmax(await this.logits(place)));
      }
    }
    return rows;
  }

  // Forgets the sequence.
  clear() {
    this.context.disposeSequence(0);
  }
}

// In place.
export function logSoftmax(row) {
  let max = -Infinity;
  for (const v of row) max = Math.max(max, v);
  let sum = 0;
  for (const v of row) sum += Math.exp(v - max);
  const shift = max + Math.log(sum);
  for (let i = 0; i < row.length; ++i) row[i] -= shift;
  return row;
}
