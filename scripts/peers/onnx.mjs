// SPDX-License-Identifier: Apache-2.0
// Writes the router's expression as an ONNX file: experts by score + bias, and
// their scores, many times over in one graph, so that calling the runtime costs
// nothing beside it. Each copy has a bias of its own, or the runtime would
// compute one of them.
//
// Field numbers: onnx.proto of the ONNX project.

const kFloat = 1;
const kInt64 = 7;
const kIrVersion = 8;
const kOpset = 13;

function varint(value) {
  const bytes = [];
  for (let v = BigInt(value); ; v >>= 7n) {
    const low = Number(v & 0x7fn);
    if (v < 0x80n) return Buffer.from([...bytes, low]);
    bytes.push(low | 0x80);
  }
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => {
  const data = typeof value === "string" ? Buffer.from(value) : value;
  return Buffer.concat([varint((field << 3) | 2), varint(data.length), data]);
};
const message = (...fields) => Buffer.concat(fields);

function tensor(name, dims, type, data) {
  return message(...dims.map((d) => number(1, d)), number(2, type),
    bytes(8, name), bytes(9, Buffer.from(data.buffer)));
}
function valueInfo(name, dims, type = kFloat) {
  const shape = message(...dims.map((d) => bytes(1, number(1, d))));
  const tensorType = message(number(1, type), bytes(2, shape));
  return message(bytes(1, name), bytes(2, bytes(1, tensorType)));
}
function node(op, inputs, outputs, attributes = []) {
  return message(...inputs.map((n) => bytes(1, n)),
    ...outputs.map((n) => bytes(2, n)), bytes(4, op),
    ...attributes.map(({ name, value }) =>
      bytes(5, message(bytes(1, name), number(3, value), number(20, 2)))));
}

// scores [tokens, experts] -> weights [tokens, chosen], the sum of the copies.
export function routerModel({ experts, chosen, tokens, copies }) {
  const nodes = [];
  const initializers = [
    tensor("k", [1], kInt64, BigInt64Array.from([BigInt(chosen)]))];
  const parts = [];
  for (let c = 0; c < copies; ++c) {
    const bias = Float32Array.from({ length: experts },
      (_, e) => 0.1 * Math.sin(1 + e * 12.9898 + c * 78.233));
    initializers.push(tensor(`bias${c}`, [experts], kFloat, bias));
    nodes.push(node("Add", ["scores", `bias${c}`], [`biased${c}`]));
    nodes.push(node("TopK", [`biased${c}`, "k"], [`top${c}`, `ids${c}`],
      [{ name: "axis", value: 1 }]));
    nodes.push(node("GatherElements", ["scores", `ids${c}`], [`part${c}`],
      [{ name: "axis", value: 1 }]));
    parts.push(`part${c}`);
  }
  nodes.push(node("Sum", parts, ["weights"]));
  const graph = message(...nodes.map((n) => bytes(1, n)), bytes(2, "router"),
    ...initializers.map((t) => bytes(5, t)),
    bytes(11, valueInfo("scores", [tokens, experts])),
    bytes(12, valueInfo("weights", [tokens, chosen])));
  return message(number(1, kIrVersion), bytes(7, graph),
    bytes(8, message(bytes(1, ""), number(2, kOpset))));
}
