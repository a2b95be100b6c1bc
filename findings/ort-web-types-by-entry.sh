#!/usr/bin/env bash
# onnxruntime-web 1.30.0: whether a model loads on the provider 'wasm' depends on the import.
#
# Models: Cast from float32 to a type and back. Provider: 'wasm' (the CPU) each time, in Node.
# Expected: 'onnxruntime-web/webgpu' adds a provider to what 'onnxruntime-web/wasm' can do. Observed:
# its WebAssembly file is built without double, (u)int16, bfloat16 and float8, for the CPU too. So a
# model that casts to bfloat16 or double fails, though Tensor accepts 'float64' in both. The message
# blames the operator, Cast(21), which works with other types.
#
# Output:
#   type          onnxruntime-web/wasm  onnxruntime-web/webgpu
#   int64         loads                 loads
#   float16       loads                 loads
#   double        loads                 Could not find an implementation for Cast(21) node with name ''
#   int16         loads                 Could not find an implementation for Cast(21) node with name ''
#   uint16        loads                 Could not find an implementation for Cast(21) node with name ''
#   bfloat16      loads                 Could not find an implementation for Cast(21) node with name ''
#   float8e4m3fn  loads                 MLDataType for: tensor(float8e4m3fn) is not currently
#                                       registered or supported
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --ignore-scripts onnxruntime-web@1.30.0

cat > show.mjs <<'JS'
import assert from 'node:assert/strict';
import * as wasm from 'onnxruntime-web/wasm';
import * as webgpu from 'onnxruntime-web/webgpu';

// Just enough of protobuf: a message is a list of [field, number | text | message].
const varint = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...varint(n >> 7)]);
const message = (fields) =>
  fields.flatMap(([field, value]) => {
    if (typeof value === 'number') return [...varint(field << 3), ...varint(value)];
    const bytes = typeof value === 'string' ? [...Buffer.from(value)] : message(value);
    return [...varint((field << 3) | 2), ...varint(bytes.length), ...bytes];
  });

const to = (type) => [[1, 'to'], [3, type], [20, 2]];
const cast = (input, output, type) => [[1, input], [2, output], [4, 'Cast'], [5, to(type)]];
const float = (name) => [[1, name], [2, [[1, [[1, 1], [2, [[1, [[1, 1]]]]]]]]]];
const model = (type) => {
  const nodes = [[1, cast('x', 'c', type)], [1, cast('c', 'y', 1)]];
  const graph = [...nodes, [2, 'g'], [11, float('x')], [12, float('y')]];
  return Uint8Array.from(message([[1, 10], [7, graph], [8, [[2, 21]]]]));
};

async function outcome(ort, type) {
  ort.env.logLevel = 'fatal';
  ort.env.wasm.numThreads = 1;
  try {
    const session = await ort.InferenceSession.create(model(type), { executionProviders: ['wasm'] });
    const { y } = await session.run({ x: new ort.Tensor('float32', [1.5], [1]) });
    return Math.trunc(y.data[0]) === 1 ? 'loads' : 'loads, wrong value';
  } catch (error) {
    return error.message.replace(/.*ERROR_MESSAGE: /s, '');
  }
}

new webgpu.Tensor('float64', [1.5], [1]);
const both = { int64: 7, float16: 10 };
const types = { ...both, double: 11, int16: 5, uint16: 4, bfloat16: 16, float8e4m3fn: 17 };
console.log('type'.padEnd(13), 'onnxruntime-web/wasm'.padEnd(21), 'onnxruntime-web/webgpu');
for (const [name, type] of Object.entries(types)) {
  const [here, there] = [await outcome(wasm, type), await outcome(webgpu, type)];
  console.log(name.padEnd(13), here.padEnd(21), there);
  assert.equal(here, 'loads');
  const reason = name === 'float8e4m3fn' ? /not currently registered/ : /implementation for Cast\(21\)/;
  assert.match(there, name in both ? /^loads$/ : reason);
}
JS
# Without the optimising compiler, which would take a minute for the two WebAssembly files.
node --liftoff-only show.mjs
