import type { EngineApi, EngineRequest } from '../../contract/engine';
import { KinoraError } from '../../contract/errors';
import type { GenerationResult, ProgressEvent } from '../../contract/progress';
import { sizeInPixels } from '../../contract/request';
import { fullMemory } from '../../contract/testing/memory';
import type { EngineClient } from '../../predictions/engine-client';
import { writeVideo } from '../../predictions/videos';

/**
 * An engine that keeps the promises of EngineApi without computing anything: it reports steps and a
 * preview, obeys cancel, and writes a small file to the real OPFS.
 */
export class ScriptedEngine implements EngineClient {
  seen: EngineRequest | null = null;
  cancels = 0;
  closed = 0;
  /** What it does between its steps; `cancelled` is asked for its promise to be kept. */
  script: (request: EngineRequest) => Promise<void> = async () => {};
  #cancelled = false;

  open() {
    return { api: this.#api, crashed: new Promise<never>(() => {}) };
  }

  close() {
    this.closed += 1;
  }

  readonly #api = {
    generate: (request: EngineRequest, onProgress: (event: ProgressEvent) => void) =>
      this.#generate(request, onProgress),
    cancel: async () => {
      this.cancels += 1;
      this.#cancelled = true;
    },
  } as unknown as EngineApi;

  async #generate(
    request: EngineRequest,
    onProgress: (event: ProgressEvent) => void,
  ): Promise<GenerationResult> {
    this.seen = request;
    this.#cancelled = false;
    const { parameters, model, backend } = request;
    const steps = parameters.num_inference_steps;
    const shared = { clip: 0, clips: 1 };
    onProgress({ type: 'phase', phase: 'denoise', ...shared });
    const pixels = new Uint8ClampedArray(80 * 44 * 4 * 3).fill(200);
    onProgress({ type: 'preview', pixels, width: 80, height: 44, count: 3 });
    for (let step = 1; step <= steps; step++) {
      await this.script(request);
      if (this.#cancelled) throw new KinoraError('CANCELLED');
      const pace = { secondsPerStep: 1, secondsRemaining: steps - step };
      onProgress({ type: 'step', step, steps, ...shared, ...pace });
    }
    const video = new Blob(['\0\0\0\x18ftypisom', request.id], { type: 'video/mp4' });
    const videoFile = request.videoFile ?? `${request.id}.mp4`;
    await writeVideo(videoFile, video);
    return {
      videoFile,
      videoBytes: video.size,
      size: parameters.size,
      ...sizeInPixels(parameters.size),
      frames: 121,
      seed: parameters.seed,
      model,
      backend,
      encoder: 'webcodecs',
      finishedEarly: false,
      memory: fullMemory,
      timings: { load: 0, text: 0, image: 0, denoise: 1, decode: 0, finish: 0, total: 1.25 },
    };
  }
}
