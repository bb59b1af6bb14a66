// SPDX-License-Identifier: Apache-2.0
// Makes texts and writes what the Rust tokenizer says to them, a JSON object a
// line. See `run`.
//
//   node oracle.mjs FOLDER-OF-NODE_MODULES TOKENIZER MODE N SEED
//
// MODE: random, code-points: {"text" or "hex" (bytes), "ids"}; decode: {"ids",
// "skip_special", "decoded"}; flags: writes a tokenizer whose added tokens have
// all flags; speed: {"name", "mb_per_s"}.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const [modules, file, mode, count, seed] = process.argv.slice(2);
const require = createRequire(path.resolve(modules, "x.js"));
const { Tokenizer } = require("@anush008/tokenizers");
const json = JSON.parse(fs.readFileSync(file, "utf8"));
const cases = path.resolve(path.dirname(fileURLToPath(import.meta.url)),
  "../../data/tokenizer/cases.jsonl");
const corpus = fs.readFileSync(cases, "utf8").trim().split("\n")
  .map((line) => JSON.parse(line).text);

// SplitMix64.
let state = BigInt(seed) * 0x9e3779b97f4a7c15n;
function below(n) {
  state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n);
  let z = state;
  z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
  z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
  return Number((z ^ (z >> 31n)) >> 11n) % n;
}
const pick = (list) => list[below(list.length)];
const isSurrogate = (c) => c >= 0xd800 && c <= 0xdfff;
function codePoint(first, last) {
  const c = first + below(last - first + 1);
  return isSurrogate(c) ? " " : String.fromCodePoint(c);
}
function repeat(min, max, make) {
  let text = "";
  for (let n = min + below(max - min + 1); n > 0; n--) text += make();
  return text;
}

// Scripts, by range.
const SCRIPTS = [[0x41, 0x7a], [0xc0, 0x24f], [0x370, 0x3ff], [0x400, 0x4ff],
  [0x590, 0x5ff], [0x600, 0x6ff], [0x900, 0x97f], [0xe00, 0xe7f],
  [0x1100, 0x11ff], [0x1e00, 0x1eff], [0x3040, 0x30ff], [0x4e00, 0x9fff],
  [0xac00, 0xd7a3], [0xff00, 0xffef], [0x1f300, 0x1faff], [0x20000, 0x2a6df],
  [0x300, 0x36f], [0x2000, 0x206f], [0x2200, 0x22ff], [0x660, 0x669]];
// One or two of every kind that the patterns tell apart.
const KINDS = [..." \n\r\t\u00a0\u3000\u0085\u180e\u200b\u200d\u2028azAZ'-.$_<|~",
  ..."0123\u00b2\u0661\u2163\u00e9\u0301\u0903\u20dd\u4e2d\u9fa5\u9fa6\u3042",
  ..."\u30a2\u3099\u309b\u30fb\u30fc\u3040\u30a0\u3001\uff5c\u2581\u0000\u007f",
  ..."\u0378\ue000\ufeff\ufffd", "\u{1f600}", "\u{20000}", "\u{10ffff}"];
const added = json.added_tokens.map((token) => token.content);
const CODE = ["if (x == 0) {\n", "    return ", "#include <", "\tfor i in range(",
  "};\n\n", "https://", "{\"key\": ", "-> ", "===", "/* ", " */", "\\n", "&&",
  "0x1F", "3.14159", "__init__", "  \r\n", "'s", "'RE", "!important"];

const MAKERS = [
  () => repeat(0, 40, () => codePoint(0, 0x10ffff)),
  () => repeat(0, 12, () => {
    const [first, last] = pick(SCRIPTS);
    return repeat(1, 8, () => codePoint(first, last)) + pick(["", " ", "\n"]);
  }),
  () => repeat(0, 40, () => pick(KINDS)),
  () => repeat(1, 4, () => pick(KINDS).repeat(1 + below(300)) +
    repeat(0, 3, () => pick(KINDS))),
  () => repeat(0, 40, () => codePoint(0, 0x9f)),
  () => repeat(0, 12, () => pick(CODE) + repeat(0, 3, () => pick(KINDS))),
  () => repeat(1, 8, () => {
    const token = pick(added);
    const cut = below(4) === 0 ? below(token.length) : token.length;
    return pick(["", " ", "  ", "\n", "a", "_", ".", "\u4e2d"]) +
      token.slice(0, cut) + pick(["", " ", "\u3000 ", "1", "z", "<"]);
  }),
  () => repeat(1, 3, () => {
    const text = pick(corpus);
    const start = below(text.length);
    return text.slice(start, start + below(120)) + pick(KINDS);
  }),
];
// JavaScript's own cuts can halve a pair.
const whole = (text) => text.replace(/[\ud800-\udfff]/gu, "\ufffd");

function randomBytes() {
  const bytes = [];
  const LIKELY = [0x61, 0x20, 0x80, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xe0, 0xe4,
    0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff, 0x0a];
  for (let n = below(24); n > 0; n--) {
    bytes.push(below(3) ? pick(LIKELY) : below(256));
  }
  return Buffer.from(bytes);
}
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

// So that a slow reader does not fill the memory.
async function write(object) {
  if (!process.stdout.write(JSON.stringify(object) + "\n")) {
    await new Promise((resolve) => process.stdout.once("drain", resolve));
  }
}

const OPTIONS = { addSpecialTokens: false };

async function random(rust) {
  for (let i = 0; i < Number(count); i++) {
    if (i % 16 === 15) {
      const bytes = randomBytes();
      const text = decoder.decode(bytes);
      const ids = (await rust.encode(text, null, OPTIONS)).getIds();
      await write({ hex: bytes.toString("hex"), ids });
      continue;
    }
    const text = whole(MAKERS[i % MAKERS.length]());
    await write({ text,
      ids: (await rust.encode(text, null, OPTIONS)).getIds() });
  }
}

// Every code point before, behind and between all that binds to it.
async function codePoints(rust) {
  for (let first = 0; first < 0x110000; first += 16) {
    let text = "";
    for (let c = first; c < first + 16; c++) {
      if (isSurrogate(c)) continue;
      const x = String.fromCodePoint(c);
      text += `a${x}b ${x}${x}.${x}1${x} \u4e2d${x}\n${x}`;
    }
    if (!text) continue;
    await write({ text,
      ids: (await rust.encode(text, null, OPTIONS)).getIds() });
  }
}

async function decode(rust) {
  const size = 1 + Math.max(...json.added_tokens.map((token) => token.id));
  for (let i = 0; i < Number(count); i++) {
    const ids = [];
    for (let n = below(40); n > 0; n--) {
      ids.push(below(3) ? below(size) : below(300));
      if (below(10) === 0) ids.push(pick(json.added_tokens).id);
    }
    const skip_special = i % 2 === 1;
    await write({ ids, skip_special,
      decoded: await rust.decode(ids, skip_special) });
  }
}

function flags() {
  const contents = ["<ab>", "<ab", "b>", "xyz", "yz", " sp ", "\u4e2d\u6587",
    "wq7", "</ab>", "|~|", "|~|~"];
  let id = 1 + Math.max(...json.added_tokens.map((token) => token.id));
  contents.forEach((content, i) => {
    const bit = (n) => below(3) === 0 || (i >> n & 1) === 1;
    json.added_tokens.push({ id: id++, content, single_word: bit(0),
      lstrip: bit(1), rstrip: bit(2), normalized: below(2) === 0,
      special: below(2) === 0 });
  });
  console.log(JSON.stringify(json));
}

async function speed(rust) {
  const bytes = (text) => Buffer.byteLength(text);
  async function measure(name, texts) {
    let best = 0;
    for (let run = 0; run < 5; run++) {
      // Of this process' own time: the machine may have other work.
      const start = process.cpuUsage();
      for (const text of texts) await rust.encode(text, null, OPTIONS);
      const used = process.cpuUsage(start);
      const seconds = (used.user + used.system) / 1e6;
      const n_bytes = texts.reduce((sum, text) => sum + bytes(text), 0);
      best = Math.max(best, n_bytes / 1e6 / seconds);
    }
    await write({ name, mb_per_s: best });
  }
  await measure("texts of the cases one by one", corpus);
  await measure("the cases as one text", [corpus.join("")]);
}

if (mode === "flags") {
  flags();
} else {
  const rust = Tokenizer.fromString(JSON.stringify(json));
  await { random, "code-points": codePoints, decode, speed }[mode](rust);
}
