import { expect, test } from 'vitest';
import {
  type Completed,
  type Prediction,
  parseParameters,
  promptOptimizationSchema,
} from '../contract';
import { chainOf, continuationOf } from './continuation';
import { advancePrediction } from './prediction-state';
import { createPrediction } from './run-input';
import { newPrediction, resultOf, started } from './testing/prediction';

function completed(id: string, fields: Partial<Completed> = {}): Completed {
  const result = resultOf(id);
  const at = '2026-01-01T00:00:00.000Z';
  const ended = { status: 'completed', result, completedAt: at } as const;
  return { ...newPrediction(), ...ended, id, ...fields };
}

const image = new Blob(['png']);
const device = { backend: 'wasm', kernels: 'fast' } as const;

test('a continuation has the settings and adapters of the video, another seed, and knows it', async () => {
  const loras = [{ name: 'swing', file: new Blob(['lora']) }];
  const parameters = parseParameters({
    prompt: 'a boat',
    negative_prompt: 'rain',
    size: '720*1280',
    num_inference_steps: 7,
    seed: 4,
    last_image_at: 3,
    loras: [{ path: 'swing', scale: 0.5 }],
  });
  const framing = { x: 0.2, y: 0.5, zoom: 1.5, background: 'blur' };
  const options = { decoder: 'full', cache: true, framing } as const;
  const first = completed('a', { parameters, profile: 'ultra-fast', options });
  const before = new Blob(['latents']);
  const ofRun = { safetyChecker: true, keepsColours: false };
  const asked = { device, before, options: ofRun };
  const changes = { ...asked, prompt: 'it lands', duration: 8 };
  const input = continuationOf(first, { loras }, image, changes);
  const { seed, last_image_at: _, ...same } = parameters;
  const row = await createPrediction(input);
  expect(row).toMatchObject({
    model: 'tiny',
    profile: 'ultra-fast',
    options: { decoder: 'full', cache: true, safetyChecker: true, keepsColours: false },
    parameters: { ...same, prompt: 'it lands', duration: 8 },
    continues: 'a',
  });
  expect(row.parameters.seed).not.toBe(seed);
  // The framing belongs to the image, and the second to the end image.
  expect(row.options.framing).toBeUndefined();
  expect(row.parameters).not.toHaveProperty('last_image_at');
  expect(input).toMatchObject({ image, loras, device, before });
  // The row keeps it through all its states.
  const processing = advancePrediction(row, started);
  const at = '2026-01-01T00:01:00.000Z';
  expect(
    advancePrediction(processing, { type: 'completed', at, result: resultOf('b') }),
  ).toMatchObject({ status: 'completed', continues: 'a' });
});

test('the record of an improved prompt is kept with the prompt alone', () => {
  const promptOptimizer = promptOptimizationSchema.parse({
    status: 'used',
    original: 'boat',
    text: 'a boat',
  });
  const first = completed('a', { options: { promptOptimizer } });
  const next = (prompt: string) =>
    continuationOf(first, { loras: [] }, image, {
      device,
      before: null,
      options: {},
      prompt,
      duration: 5,
    });
  expect(next('a boat').options.promptOptimizer).toEqual(promptOptimizer);
  expect(next('it lands').options.promptOptimizer).toBeUndefined();
});

test('the chain goes back to the first video that is still there', async () => {
  const rows: Prediction[] = [
    completed('b', { continues: 'a' }),
    completed('c', { continues: 'b' }),
  ];
  const get = async (id: string) => rows.find((row) => row.id === id);
  const last = completed('d', { continues: 'c' });
  expect((await chainOf(last, get)).map(({ id }) => id)).toEqual(['b', 'c', 'd']);
  expect(await chainOf(completed('x'), get)).toHaveLength(1);
});
