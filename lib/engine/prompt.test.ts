import { expect, test } from 'vitest';
import {
  type EngineRequest,
  KinoraError,
  type ProgressEvent,
  type PromptOptimization,
  parseParameters,
  type RunOptions,
} from '../contract';
import type { OptimizerDependencies } from '../language-model';
import type { VideoModel } from '../pipeline/model';
import { optimisationOf } from './prompt';

const prompt = 'a boat on a lake';
const earlier: PromptOptimization = {
  status: 'used',
  original: 'boat',
  text: prompt,
  reasons: [],
  model: 'tiny',
  sha256: null,
  seed: 3,
  milliseconds: 5,
};
const model = {
  promptMeter: async () => (text: string) => ({ tokens: text.length, limit: 512, kept: 0 }),
} as unknown as VideoModel;
const none: OptimizerDependencies = {
  find: async () => null,
  optimize: () => Promise.reject(new Error('not called')),
};

function record(
  promptOptimizer: RunOptions['promptOptimizer'],
  parts = none,
  events: ProgressEvent[] = [],
  signal = new AbortController().signal,
) {
  const parameters = parseParameters({ prompt, seed: 7 });
  const request = { parameters, options: { promptOptimizer } } as EngineRequest;
  return optimisationOf(request, model, parts, signal, (event) => void events.push(event));
}

test('nothing is optimised unasked; what was optimised before is kept, and told as edited once changed', async () => {
  const events: ProgressEvent[] = [];
  expect(await record(undefined, none, events)).toBeNull();
  expect(await record(earlier, none, events)).toEqual(earlier);
  const changed = { ...earlier, text: 'a ship on a lake' };
  expect(await record(changed, none, events)).toEqual({ ...earlier, status: 'edited' });
  expect(events).toEqual([]);
});

test('without a language model, or with one that fails, the prompt stays as it is', async () => {
  expect(await record(true)).toMatchObject({ status: 'unavailable', text: prompt, model: null });
  const broken = { ...none, find: () => Promise.reject(new KinoraError('FILE_UNREADABLE')) };
  const failed = await record(true, broken);
  expect(failed).toMatchObject({ status: 'failed', original: prompt, text: prompt });
  expect(failed?.reasons.join()).toContain('FILE_UNREADABLE');
});

test('a cancelled optimisation ends the run', async () => {
  const abort = new AbortController();
  const aborting: OptimizerDependencies = {
    ...none,
    find: async () => {
      abort.abort();
      throw new Error('aborted');
    },
  };
  const run = record(true, aborting, [], abort.signal);
  await expect(run).rejects.toMatchObject({ code: 'CANCELLED' });
});
