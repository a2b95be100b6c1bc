import {
  type Applied,
  type CheckRequest,
  type DeviceReport,
  type EngineApi,
  type EngineRequest,
  type GenerationResult,
  KinoraError,
  type ProgressEvent,
  promptOptimizationSchema,
  type Safety,
  safetySchema,
  sizeInPixels,
} from '../../contract';
import { fullMemory } from '../../contract/testing/memory';
import type { EngineClient } from '../engine-client';
import { openRunFiles } from '../run-files';
import { isServed, writeVideo } from '../videos';

const applied: Omit<Applied, 'steps' | 'decoder'> = {
  guidance_scale: 1,
  guided_steps: 0,
  scheduler: 'unipc',
  flow_shift: 5,
  adapter: null,
  cache: 'none',
  unused: [],
};

/**
 * An engine that implements EngineApi without computing: it reports steps and a preview, can be cancelled,
 * and writes small files to the real OPFS. The tests in e2e/ use the real engine.
 */
export class FakeEngine implements EngineClient {
  opened = 0;
  closed = 0;
  cancels = 0;
  seen: EngineRequest | null = null;
  made: GenerationResult | null = null;
  readonly checked: CheckRequest[] = [];
  /** What the next check throws. */
  checkError: KinoraError | null = null;
  /** Called before each step of the next run. */
  script: (request: EngineRequest) => Promise<void> = async () => {};
  crash: (error: KinoraError) => void = () => {};
  /** Whether runs are saved, and decoded by the tiny decoder where the request does not say otherwise. */
  saves = false;
  /** The progress callback of the last run. */
  report: ((event: ProgressEvent) => void) | null = null;
  #cancelled = false;
  #paused = false;
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

  /** What the next probes find instead of a GPU. */
  readonly outcomes: DeviceReport['outcome'][] = [];

  readonly #api = {
    probe: async () => ({ outcome: this.outcomes.shift() ?? 'ready' }),
    generate: (request: EngineRequest, onProgress: (event: ProgressEvent) => void) =>
      this.#generate(request, onProgress),
    check: async (request: CheckRequest): Promise<Safety> => {
      this.checked.push(request);
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
    pause: async () => {
      this.#paused = true;
    },
  } as unknown as EngineApi;

  async #generate(
    request: EngineRequest,
    onProgress: (event: ProgressEvent) => void,
  ): Promise<GenerationResult> {
    this.seen = request;
    this.report = onProgress;
    this.#cancelled = false;
    this.#paused = false;
    const { parameters, model, options, device, continuation } = request;
    this.#early = continuation === 'finish';
    const steps = continuation === 'refine' ? 0 : parameters.num_inference_steps;
    const files = openRunFiles(request.id);
    const saved = continuation ? await files.read('state-a') : null;
    const from = Number((await saved?.text()) ?? 0);
    if (continuation === 'refine') await this.script(request);
    const shared = { clip: 0, clips: 1 };
    onProgress({ type: 'phase', phase: 'denoise', ...shared });
    const pixels = new Uint8ClampedArray(80 * 44 * 4 * 3).fill(200);
    onProgress({ type: 'preview', pixels, width: 80, height: 44, count: 3 });
    for (let step = from + 1; step <= steps && !this.#early; step++) {
      await this.script(request);
      if (this.#cancelled) throw new KinoraError('CANCELLED');
      const [share, secondsRemaining] = [step / (steps + 1), steps - step];
      onProgress({ type: 'estimate', share, secondsRemaining });
      onProgress({ type: 'step', step, steps, ...shared, secondsPerStep: 1 });
      if (!this.saves) continue;
      await files.write('state-a', new Blob([String(step)]));
      onProgress({ type: 'checkpoint', checkpoint: { step, steps, ...shared } });
      if (this.#paused) throw new KinoraError('PAUSED');
    }
    if (this.saves) {
      await files.remove('state-a');
      await files.write('clip-0', new Blob(['latents']));
    }
    const video = new Blob(['\0\0\0\x18ftypisom', request.id], { type: 'video/mp4' });
    const videoFile = request.videoFile ?? `${request.id}.mp4`;
    await writeVideo(videoFile, video);
    this.made = {
      videoFile,
      videoBytes: video.size,
      ...(isServed(videoFile) && {
        pictures: { poster: new Blob(['a frame']), image: new Blob(['framed']) },
      }),
      size: parameters.size,
      ...sizeInPixels(parameters.size),
      frames: 121,
      frameRate: 24,
      seed: parameters.seed,
      model,
      backend: device.backend,
      encoder: 'webcodecs',
      finishedEarly: this.#early,
      ...(from > 0 && { resumes: 1 }),
      ...(this.saves && { applied: { ...applied, steps, decoder: options.decoder ?? 'tiny' } }),
      memory: fullMemory,
      safety: safetySchema.parse({ status: options.safetyChecker ? 'clear' : 'off' }),
      ...(options.promptOptimizer === true && {
        promptOptimization: promptOptimizationSchema.parse({
          status: 'used',
          original: parameters.prompt,
          text: `${parameters.prompt}, slowly`,
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
