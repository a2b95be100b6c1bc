/** @module-tag full */
import * as Comlink from 'comlink';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type EngineApi, installTransferHandlers, type ProgressEvent } from '../contract';
import { failureOf } from '../contract/testing/failure';
import { listVideos, removeVideo } from '../predictions/videos';
import { fetchStill, generate, makeRequest } from './testing/runs';

installTransferHandlers();

let worker: Worker;
let engine: Comlink.Remote<EngineApi>;
let still: Blob;

beforeAll(async () => {
  worker = new Worker(new URL('./testing/optimising-engine.ts', import.meta.url), {
    type: 'module',
    name: '1',
  });
  engine = Comlink.wrap<EngineApi>(worker);
  still = await fetchStill();
});
afterAll(() => worker.terminate());
afterEach(async () => {
  for (const file of await listVideos()) await removeVideo(file);
});

const phasesOf = (events: readonly ProgressEvent[]) => [
  ...new Set(events.flatMap((event) => (event.type === 'phase' ? [event.phase] : []))),
];

test('the prompt is optimised first; result and file have both texts', async () => {
  const prompt = 'a cat walks';
  const asked = makeRequest(still, { prompt }, { promptOptimizer: true });
  const events: ProgressEvent[] = [];
  const { promptOptimization, timings } = await generate(engine, asked, events);
  expect(promptOptimization).toMatchObject({
    status: 'used',
    original: prompt,
    model: 'tiny',
    sha256: '0'.repeat(64),
    seed: 42,
  });
  expect(promptOptimization?.text).toMatch(/^[a-z ]{20,40}\.$/);
  expect(promptOptimization?.reasons).toEqual([expect.stringMatching(/^\d+ tokens$/)]);
  expect(phasesOf(events).slice(0, 3)).toEqual(['optimise', 'load', 'text']);
  expect(timings.optimise).toBeGreaterThan(0);
});

test('cancelling while the prompt is optimised', async () => {
  const running = generate(
    engine,
    makeRequest(still, {}, { promptOptimizer: true }),
    [],
    (event) => {
      if (event.type === 'phase' && event.phase === 'optimise') void engine.cancel();
    },
  );
  expect((await failureOf(running)).code).toBe('CANCELLED');
  expect(await listVideos()).toEqual([]);
  expect((await engine.counters()).liveBytes).toBe(0);
});

test('a run that is resumed keeps its optimised prompt', async () => {
  // Steps enough that the request to pause comes before the last one ends.
  const asked = makeRequest(still, { num_inference_steps: 12 }, { promptOptimizer: true });
  const paused = generate(engine, asked, [], (event) => {
    if (event.type === 'step') void engine.pause();
  });
  expect((await failureOf(paused)).code).toBe('PAUSED');
  const events: ProgressEvent[] = [];
  const result = await generate(engine, { ...asked, continuation: 'resume' }, events);
  expect(phasesOf(events)).toEqual(['load', 'denoise', 'decode', 'finish']);
  expect(result.resumes).toBe(1);
  const { prompt } = asked.parameters;
  expect(result.promptOptimization).toMatchObject({ status: 'used', original: prompt });
});
