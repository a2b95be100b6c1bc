import { type ProgressEvent, type Safety, uncheckedSafety } from '../contract';
import { createBackend, probeDevice } from '../gpu';
import type { Frame } from '../pipeline/latents';
import { type Backends, SafetyCheck, type SafetyChecker, sampledFrames } from '../safety';
import { coverCrop, inspectVideo, readFrames } from '../video';
import type { EngineDevice } from './device';
import type { EngineTools } from './tools';

/** Dependencies of the check of a run. */
export interface RunSafetyOptions {
  /** Whether a check was asked for. */
  readonly enabled: boolean;
  readonly modelId: string;
  readonly tools: EngineTools;
  readonly backends: Backends;
  readonly signal: AbortSignal;
  readonly report: (event: ProgressEvent) => void;
}

/** The safety check of one run: the input before it, sampled frames after it. */
export class RunSafety {
  readonly #check: SafetyCheck | null;

  private constructor(
    readonly options: RunSafetyOptions,
    readonly tool: SafetyChecker | null,
    /** The record where no checker runs. */
    readonly unchecked: Safety,
  ) {
    const onSquares = (done: number, total: number) =>
      options.report({ type: 'check', done, total });
    this.#check = tool && new SafetyCheck(tool, { onSquares });
  }

  /** A checker whose files cannot be used is one that failed. */
  static async open(options: RunSafetyOptions): Promise<RunSafety> {
    const { enabled, modelId, tools } = options;
    if (!enabled) return new RunSafety(options, null, uncheckedSafety('off'));
    const failed = uncheckedSafety('unverified', 'failed');
    try {
      return new RunSafety(options, await tools.openChecker(modelId), failed);
    } catch {
      // A checker that cannot be opened gives no verdict; the result says so.
      options.report({ type: 'input-check', score: null, flagged: false });
      return new RunSafety(options, null, failed);
    }
  }

  /** Takes each frame of the video, which is read before this returns. @param index from 0 */
  take(frame: Frame, index: number): void {
    this.#check?.take(frame, index);
  }

  /**
   * Scores the images of the request; the higher score counts.
   *
   * @param shown makes the part of each that the video shows, in the size of the video
   * @returns whether one is flagged
   */
  async checkInput(shown: readonly (() => Frame)[]): Promise<boolean> {
    const { tool: checker, options } = this;
    if (!checker || !this.#check) return false;
    const { backends, signal, report } = options;
    const squares = shown.map((make) => checker.squaresOfFrame(make()));
    const score = await this.#check.scoreInput(squares, backends, signal);
    const flagged = score !== null && score >= checker.threshold;
    report({ type: 'input-check', score, flagged });
    return flagged;
  }

  /** Scores the frames that were taken. */
  async verdict(): Promise<Safety> {
    const { backends, signal, report } = this.options;
    if (!this.#check) return this.unchecked;
    report({ type: 'phase', phase: 'check', clip: 0, clips: 1 });
    return this.#check.verdict(backends, signal);
  }
}

/**
 * The places where a check is computed: the device of the run, then the CPU if that fails. An emulated GPU takes
 * about 40 s for what the CPU does in half a second, and is left out.
 */
export function checkBackends(device: EngineDevice, kind: 'webgpu' | 'wasm'): Backends {
  return async function* () {
    const emulated = kind === 'webgpu' && (await probeDevice()).software;
    if (!emulated) {
      // A GPU that was lost meanwhile may not open again: the CPU is still there.
      const backend = await device.open(kind).catch((error: unknown) => {
        if (kind === 'wasm') throw error;
        return null;
      });
      if (backend) yield backend;
      if (kind === 'wasm') return;
      // A device that is lost fails the next time it is used.
      await backend?.recover().catch(() => undefined);
    }
    const cpu = await createBackend('wasm');
    try {
      yield cpu;
    } finally {
      await cpu.dispose();
    }
  };
}

/**
 * Checks a finished video: decodes the frames that a run looks at, and scores them.
 *
 * @throws KinoraError `VIDEO_UNREADABLE`; the signal's reason
 */
export async function checkVideo(
  file: Blob,
  checker: SafetyChecker,
  backends: Backends,
  signal: AbortSignal,
): Promise<Safety> {
  const { frames, frameRate } = await inspectVideo(file);
  const indices = sampledFrames(frames);
  const check = new SafetyCheck(checker);
  for await (const { index, pixels } of readFrames(file, indices, frameRate)) {
    signal.throwIfAborted();
    const { width, height } = pixels;
    check.take({ data: coverCrop(pixels, width, height), width, height }, index);
  }
  return check.verdict(backends, signal);
}
