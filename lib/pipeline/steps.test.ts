import { expect, test } from 'vitest';
import {
  FrameChain,
  type FrameStep,
  type PromptStep,
  runPromptSteps,
  type StepContext,
} from './steps';

const image = { data: new Float32Array(3), width: 1, height: 1 };
const context: StepContext = { seed: 1, image, frames: 2, signal: new AbortController().signal };

const upper: PromptStep = {
  name: 'upper',
  run: async (texts) => ({
    texts: { ...texts, prompt: texts.prompt.toUpperCase() },
    findings: { changed: true },
  }),
};
const exclaiming: PromptStep = {
  name: 'exclaiming',
  run: async (texts) => ({ texts: { ...texts, prompt: `${texts.prompt}!` } }),
};

test('prompt steps see what the one before made, and only findings are kept', async () => {
  const texts = { prompt: 'a boat', negativePrompt: 'blurry' };
  const result = await runPromptSteps([upper, exclaiming], texts, context);
  expect(result.texts).toEqual({ prompt: 'A BOAT!', negativePrompt: 'blurry' });
  expect(result.findings).toEqual({ upper: { changed: true } });
  expect(await runPromptSteps([], texts, context)).toEqual({ texts, findings: {} });
});

test('an abort comes before the next prompt step', async () => {
  const abort = new AbortController();
  const ending: PromptStep = {
    name: 'ending',
    run: async (texts) => {
      abort.abort(new Error('enough'));
      return { texts };
    },
  };
  const texts = { prompt: 'a', negativePrompt: '' };
  const run = runPromptSteps([ending, upper], texts, { ...context, signal: abort.signal });
  await expect(run).rejects.toThrow('enough');
});

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
