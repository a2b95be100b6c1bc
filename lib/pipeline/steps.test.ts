import { expect, test } from 'vitest';
import { FrameChain, type FrameStep } from './steps';

const image = { data: new Float32Array(3), width: 1, height: 1 };

test('frame steps run in order, the last one makes what the encoder takes', async () => {
  const seen: string[] = [];
  const brighter: FrameStep = {
    name: 'brighter',
    apply(frame, index) {
      seen.push(`brighter ${index}`);
      return { ...frame, data: frame.data.map((value) => value + 1) };
    },
    finish: async () => ({ calls: seen.length }),
    dispose: () => void seen.push('disposed'),
  };
  const sums: FrameStep<typeof image, number> = {
    name: 'sum',
    apply: ({ data }) => data.reduce((a, b) => a + b, 0),
  };
  const chain = new FrameChain([brighter], sums);
  expect(await chain.next(image)).toBe(3);
  expect(await chain.next(image)).toBe(3);
  expect(await chain.finish()).toEqual({ brighter: { calls: 2 } });
  chain.dispose();
  expect(seen).toEqual(['brighter 0', 'brighter 1', 'disposed']);
});
