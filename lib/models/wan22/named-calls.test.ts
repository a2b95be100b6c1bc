import { beforeAll, describe, expect, test } from 'vitest';
import { at } from '../../contract';
import type { Backend, DeviceTensor, Kernels } from '../../gpu';
import type { AttentionCall, Call } from '../../onnx';
import type { ParityLine } from '../../pipeline/parity';
import { diskFolder, goldens } from '../../weights/testing/files';
import { openGolden } from './parity/golden';
import { stages } from './parity/stages';
import { nodeBackend } from './testing/model';
import { parityContext } from './testing/parity';

/** The stages whose graphs have named calls, and no loops over them. */
const checked = ['text', 'image latent', 'transformer', 'video', 'tiny decoders'];

const golden = await openGolden(diskFolder(goldens));

async function parityWith(kernelsOf: (backend: Backend) => Kernels | null): Promise<ParityLine[]> {
  const backend = nodeBackend();
  backend.kernels = kernelsOf(backend);
  const context = parityContext(golden, backend);
  const lines: ParityLine[] = [];
  for (const stage of stages.filter(({ name }) => checked.includes(name))) {
    for await (const line of stage.run(context)) lines.push(line);
  }
  await backend.releaseSessions();
  expect(backend.counters().liveBytes).toBe(0);
  await backend.dispose();
  return lines;
}

/** softmax(q·kᵀ·scale + bias)·v in plain loops, by the contract of {@link AttentionCall}. */
function plainAttention(
  { heads, headSize, scale }: AttentionCall['spec'],
  q: Float32Array,
  k: Float32Array,
  v: Float32Array,
  bias: Float32Array | null,
): Float32Array {
  const width = heads * headSize;
  const [rows, keys] = [q.length / width, k.length / width];
  const biasHeads = bias ? bias.length / (rows * keys) : 1;
  const out = new Float32Array(q.length);
  for (let head = 0; head < heads; head++) {
    for (let row = 0; row < rows; row++) {
      const start = row * width + head * headSize;
      const logits = Array.from({ length: keys }, (_, key) => {
        let dot = 0;
        for (let c = 0; c < headSize; c++)
          dot += at(q, start + c) * at(k, key * width + head * headSize + c);
        const added = bias ? at(bias, ((head % biasHeads) * rows + row) * keys + key) : 0;
        return dot * scale + added;
      });
      const most = Math.max(...logits);
      const weights = logits.map((logit) => Math.exp(logit - most));
      const sum = weights.reduce((total, weight) => total + weight, 0);
      for (const [key, weight] of weights.entries()) {
        for (let c = 0; c < headSize; c++) {
          const value = at(v, key * width + head * headSize + c);
          out[start + c] = at(out, start + c) + (weight / sum) * value;
        }
      }
    }
  }
  return out;
}

describe('graphs that run part by part', () => {
  let whole: ParityLine[];
  beforeAll(async () => {
    whole = await parityWith(() => null);
    expect(whole.length).toBeGreaterThan(8);
    expect(whole.filter(({ ok }) => !ok)).toEqual([]);
  });

  test('a backend that answers no call gives the same numbers', async () => {
    const calls: Call[] = [];
    const lines = await parityWith(() => ({
      choice: null,
      run: async (call) => {
        calls.push(call);
        return false;
      },
    }));
    // The runtime computes the same operators on the same numbers.
    expect(lines).toEqual(whole);
    expect(new Set(calls.map(({ operator }) => operator))).toEqual(
      new Set(['linear', 'attention', 'convolution']),
    );
  });

  test('a backend that computes attention itself agrees with the goldens', async () => {
    let answered = 0;
    const lines = await parityWith((backend) => ({
      choice: null,
      run: async (call, inputs, output) => {
        if (call.operator !== 'attention') return false;
        const read = (role: string) => backend.read(float(inputs[role]));
        const [q, k, v] = [await read('q'), await read('k'), await read('v')];
        const bias = call.spec.bias ? await read('bias') : null;
        backend.write(output, plainAttention(call.spec, q, k, v, bias));
        answered += 1;
        return true;
      },
    }));
    expect(lines.map(({ stage }) => stage)).toEqual(whole.map(({ stage }) => stage));
    expect(lines.filter(({ ok }) => !ok)).toEqual([]);
    expect(answered).toBeGreaterThan(10);
  });
});

function float(tensor: DeviceTensor | undefined): DeviceTensor<'float32'> {
  if (tensor?.dtype !== 'float32') throw new TypeError('not a float32 tensor');
  return tensor as DeviceTensor<'float32'>;
}
