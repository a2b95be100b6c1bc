import { afterAll, beforeAll, expect, test } from 'vitest';
import { GraphBuilder, type LinearCall, linear } from '../../onnx';
import { createBackend, relativeRms } from '..';
import { type Backend, Scope } from '../backend';
import { OwnKernels } from './own';
import { numbers } from './testing/linear';
import type { KernelChoice } from './variants';

const choice: KernelChoice = {
  mode: 'exact',
  linear: { rows: 16, columns: 16, threadRows: 4, threadColumns: 4, shared: 'f32' },
  attention: null,
  convolution: null,
};

let backend: Backend;
beforeAll(async () => {
  backend = await createBackend('webgpu');
});
afterAll(() => backend.dispose());

const inFeatures = 64;
const outFeatures = 40;
const rank = 6;
const plain = {
  inFeatures,
  outFeatures,
  bits: 8,
  bias: true,
  lora: false,
  activation: 'none',
  residual: 'none',
} as const;

const others: readonly LinearCall['spec'][] = [
  { ...plain, bits: 4, bias: false, activation: 'gelu' },
  { ...plain, bits: null, residual: 'added' },
];

async function compare(spec: LinearCall['spec']): Promise<void> {
  const scope = new Scope(backend);
  const rows = 19;
  const float = {
    x: [rows, inFeatures],
    ...(spec.bits === null && { weight: [outFeatures, inFeatures] }),
    ...(spec.bits !== null && { scales: [outFeatures, inFeatures / 32] }),
    ...(spec.bias && { bias: [outFeatures] }),
    ...(spec.lora && { down: [rank, inFeatures], up: [outFeatures, rank] }),
    ...(spec.residual !== 'none' && { residual: [rows, outFeatures] }),
    ...(spec.residual === 'gated' && { gate: [outFeatures] }),
  };
  const g = new GraphBuilder('linear');
  const entries = Object.entries<readonly number[]>(float);
  const inputs = Object.fromEntries(
    entries.map(([name, dims]) => [name, g.input(name, 'float32', dims)] as const),
  );
  const bound = Object.fromEntries<ReturnType<Scope['tensor']>>(
    entries.map(([name, dims], salt) => {
      const count = dims.reduce((product, size) => product * size, 1);
      return [name, scope.float32(dims, 'activations', numbers(count, salt))];
    }),
  );
  const packedDims = [outFeatures, inFeatures / 32, 4 * (spec.bits ?? 0)];
  if (spec.bits !== null) {
    const bytes = Uint8Array.from(numbers(outFeatures * inFeatures * (spec.bits / 8), 9), (v) =>
      Math.floor(128 + 128 * v),
    );
    bound.values = scope.tensor('uint8', packedDims, 'weights', bytes);
  }
  const values = spec.bits === null ? {} : { values: g.input('values', 'uint8', packedDims) };
  const { x, ...others } = inputs;
  if (!x) throw new Error('no x');
  g.output('y', linear(spec, { x, ...others, ...values }));
  const graph = g.build();
  const result = async () => {
    const y = scope.float32([rows, outFeatures], 'activations');
    await backend.run(graph, bound, { y });
    return backend.read(y);
  };
  const expected = await result();
  const kernels = new OwnKernels(backend, choice);
  const answers: boolean[] = [];
  backend.kernels = {
    choice,
    run: async (...call) => {
      const answer = await kernels.run(...call);
      answers.push(answer);
      return answer;
    },
  };
  const own = await result();
  backend.kernels = null;
  expect(answers).toEqual([true]);
  expect(relativeRms(own, expected)).toBeLessThan(1e-5);
  scope.dispose();
}

test('a named linear gives what the runtime gives', () =>
  compare({ ...plain, lora: true, residual: 'gated' }));

test.each(others)('so does %o', { tags: ['full'] }, compare);
