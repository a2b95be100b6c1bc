import { type GenerationResult, type Prediction, parseParameters } from '../../contract';
import { fullMemory } from '../../contract/testing/memory';
import type { PredictionEvent } from '../prediction-state';

/** A prediction that was just created; some fields may be given. */
export function newPrediction(fields: Partial<Prediction> = {}): Prediction {
  const created = {
    id: crypto.randomUUID().replaceAll('-', ''),
    model: 'tiny',
    profile: 'standard',
    backend: 'wasm',
    parameters: parseParameters({ prompt: 'a boat', seed: 4, num_inference_steps: 6 }),
    options: {},
    createdAt: '2025-01-01T00:00:00.000Z',
    status: 'created',
    position: 1,
    device: { backend: 'wasm' },
  } as const;
  return { ...created, ...fields } as Prediction;
}

/** The turn of a prediction of {@link newPrediction} has come. */
export const started = {
  type: 'started',
  at: '2025-01-01T00:00:01.000Z',
  seed: 4,
} as const satisfies PredictionEvent;

/** The result of a prediction of five seconds. */
export function resultOf(id: string): GenerationResult {
  return {
    videoFile: `${id}.mp4`,
    videoBytes: 5,
    size: '1280*720',
    width: 1280,
    height: 720,
    frames: 121,
    frameRate: 24,
    seed: 4,
    model: 'tiny',
    backend: 'wasm',
    encoder: 'webcodecs',
    finishedEarly: false,
    memory: fullMemory,
    timings: { load: 1, text: 2, image: 3, denoise: 4, decode: 5, finish: 6, total: 21 },
  };
}
