import type { Phase } from '../contract';
import type { HeadlessEvent } from '../contract/headless';

/** A phase of a run, or the loading of its weights. The text encoder is read in `text`, the VAE's decoder in `decode`. */
interface PhaseTime {
  readonly phase: Phase;
  /** From 0. */
  readonly clip: number;
  seconds: number;
  /** From the start of `decode` to its first frame: the decoder is loaded then. */
  firstFrameSeconds?: number;
}

/** The seconds of a run's phases and of its denoising steps, in their order, by the events of its progress. */
export class RunTimes {
  readonly phases: PhaseTime[] = [];
  /** Of the first one on, from step to step. */
  readonly steps: number[] = [];
  #since = 0;
  #stepSince = 0;

  /** @param now milliseconds */
  take(event: HeadlessEvent, now = performance.now()): void {
    const last = this.phases.at(-1);
    if (event.type === 'phase') {
      this.#end(now);
      this.phases.push({ phase: event.phase, clip: event.clip, seconds: 0 });
      this.#since = now;
      this.#stepSince = now;
    } else if (event.type === 'step') {
      this.steps.push((now - this.#stepSince) / 1000);
      this.#stepSince = now;
    } else if (event.type === 'frame' && last?.phase === 'decode') {
      last.firstFrameSeconds ??= (now - this.#since) / 1000;
    }
  }

  /** Ends the last phase. */
  end(): void {
    this.#end(performance.now());
  }

  #end(now: number): void {
    const last = this.phases.at(-1);
    if (last) last.seconds = (now - this.#since) / 1000;
  }
}
