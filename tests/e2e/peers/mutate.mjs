// SPDX-License-Identifier: Apache-2.0
// Writes a wrong copy of a GGUF file: the outputs of every hyper-connection that
// mix the streams (4 x 4 of them) transposed. Everything else stays; a reader
// that took the wrong order would see the same model.
//
//   node mutate.mjs IN.gguf OUT.gguf
import { readFileSync, writeFileSync } from "node:fs";

const bytes = readFileSync(process.argv[2]);
let at = 0;
const u32 = () => bytes.readUInt32LE((at += 4) - 4);
const u64 = () => Number(bytes.readBigUInt64LE((at += 8) - 8));
const string = () => {
  const n = u64();
  return bytes.toString("utf8", at, (at += n));
};
const kBytes = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
const kString = 8;
const kArray = 9;
function skip(type) {
  if (type === kString) {
    string();
  } else if (type === kArray) {
    const of = u32();
    for (let n = u64(); n > 0; --n) skip(of);
  } else {
    at += kBytes[type];
  }
}

at = 8;  // magic, version
const nTensors = u64();
const nKeys = u64();
let alignment = 32;
for (let i = 0; i < nKeys; ++i) {
  const key = string();
  const type = u32();
  if (key === "general.alignment") alignment = bytes.readUInt32LE(at);
  skip(type);
}
const tensors = [];
for (let i = 0; i < nTensors; ++i) {
  const name = string();
  const shape = Array.from({ length: u32() }, u64);
  tensors.push({ name, shape, type: u32(), offset: u64() });
}
const data = Math.ceil(at / alignment) * alignment;

// Rows 8 + 4 a + b and 8 + 4 b + a of 24 change places.
let n = 0;
for (const { name, shape, type, offset } of tensors) {
  if (!/hc_(attn|ffn)_(fn|base)/.test(name)) continue;
  const rows = shape.at(-1);
  if (type !== 0 || rows !== 24) throw new Error(`${name}: not F32 of 24 rows`);
  const rowBytes = 4 * (shape.length === 1 ? 1 : shape[0]);
  const row = (r) => {
    const begin = data + offset + (8 + r) * rowBytes;
    return bytes.subarray(begin, begin + rowBytes);
  };
  for (let a = 0; a < 4; ++a) {
    for (let b = 0; b < a; ++b) {
      const kept = Buffer.from(row(4 * a + b));
      row(4 * b + a).copy(row(4 * a + b));
      kept.copy(row(4 * b + a));
    }
  }
  ++n;
}
if (n === 0) throw new Error("no hyper-connection in this file");
writeFileSync(process.argv[3], bytes);
