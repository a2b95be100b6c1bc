import type { EngineApi, EngineRequest } from '../../contract/engine';
import { KinoraError } from '../../contract/errors';
import type { GenerationResult, ProgressEvent } from '../../contract/progress';
import { promptOptimizationSchema } from '../../contract/prompt-optimization';
import { sizeInPixels } from '../../contract/request';
import { type Safety, safetySchema } from '../../contract/safety';
import { fullMemory } from '../../contract/testing/memory';
import type { EngineClient } from '../engine-client';
import { writeVideo } from '../videos';

/**
 * An engine that implements EngineApi without computing: it reports steps and a preview, can be cancelled,
 * and writes a small file to the real OPFS. The tests in e2e/ use the real engine.
 */
export class FakeEngine implements EngineClient {
  opened = 0;
  closed = 0;
  cancels = 0;
  seen: EngineRequest | null = null;
  made: GenerationResult | null = null;
  readonly checked: string[] = [];
  /** What the next check throws. */
  checkError: KinoraError | null = null;
  /** Called before each step of the next run. */
  script: (request: EngineRequest) => Promise<void> = async () => {};
  crash: (error: KinoraError) => void = () => {};
  #cancelled = false;
  #early = false;

  open() {
    this.opened += 1;
    const crashed = new Promise<never>((_, reject) => {
      this.crash = reject;
    });
    crashed.catch(() => {});
    return { api: this.#api, crashed };
  }

  close() {
    this.closed += 1;
  }

  readonly #api = {
    generate: (request: EngineRequest, onProgress: (event: ProgressEvent) => void) =>
      this.#generate(request, onProgress),
    check: async (videoFile: string): Promise<Safety> => {
      this.checked.push(videoFile);
      if (this.checkError) throw this.checkError;
      return safetySchema.parse({ status: 'clear', score: 0.25, frames: [0.25] });
    },
    cancel: async () => {
      this.cancels += 1;
      this.#cancelled = true;
    },
    finishEarly: async () => {
      this.#early = true;
    },
    pause: async () => {},
    resume: async () => {},
  } as unknown as EngineApi;

  async #generate(
    request: EngineRequest,
    onProgress: (event: ProgressEvent) => void,
  ): Promise<GenerationResult> {
    this.seen = request;
    this.#cancelled = false;
    this.#early = false;
    const { parameters, model, backend } = request;
    const steps = parameters.num_inference_steps;
    const shared = { clip: 0, clips: 1 };
    onProgress({ type: 'phase', phase: 'denoise', ...shared });
    const pixels = new Uint8ClampedArray(80 * 44 * 4 * 3).fill(200);
    onProgress({ type: 'preview', pixels, width: 80, height: 44, count: 3 });
    for (let step = 1; step <= steps && !this.#early; step++) {
      await this.script(request);
      if (this.#cancelled) throw new KinoraError('CANCELLED');
      const [share, secondsRemaining] = [step / (steps + 1), steps - step];
      onProgress({ type: 'estimate', share, secondsRemaining, reason: null });
      onProgress({ type: 'step', step, steps, ...shared, secondsPerStep: 1 });
    }
    const video = new Blob(['\0\0\0\x18ftypisom', request.id], { type: 'video/mp4' });
    const videoFile = request.videoFile ?? `${request.id}.mp4`;
    await writeVideo(videoFile, video);
    this.made = {
      videoFile,
      videoBytes: video.size,
      size: parameters.size,
      ...sizeInPixels(parameters.size),
      frames: 121,
      seed: parameters.seed,
      model,
      backend,
      encoder: 'webcodecs',
      finishedEarly: this.#early,
      memory: fullMemory,
      safety: safetySchema.parse({ status: request.safetyChecker ? 'clear' : 'off' }),
      ...(request.promptOptimizer === true && {
        promptOptimization: promptOptimizationSchema.parse({
          ...{ status: 'used', original: parameters.prompt, text: `${parameters.prompt}, slowly` },
        }),
      }),
      timings: { load: 0, text: 0, image: 0, denoise: 1, decode: 0, finish: 0, total: 1.25 },
    };
    return this.made;
  }
}

/** A promise and the function that resolves it. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
