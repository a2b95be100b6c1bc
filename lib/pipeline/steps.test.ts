import { expect, test } from 'vitest';
import { FrameChain, type FrameStep } from './steps';

const image = { data: new Float32Array(3), width: 1, height: 1 };

test('frame steps run in order', async () => {
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
  const doubled: FrameStep = {
    name: 'doubled',
    apply: (frame) => ({ ...frame, data: frame.data.map((value) => 2 * value) }),
  };
  const chain = new FrameChain([brighter, doubled]);
  const { data } = await chain.next({ ...image, data: Float32Array.of(1, 2, 3) });
  expect([...data]).toEqual([4, 6, 8]);
  await chain.next(image);
  expect(await chain.finish()).toEqual({ brighter: { calls: 2 } });
  chain.dispose();
  expect(seen).toEqual(['brighter 0', 'brighter 1', 'disposed']);
});
