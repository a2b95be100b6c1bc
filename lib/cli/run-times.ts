import type { HeadlessEvent, Phase } from '../contract';

/** A phase of a run. The text encoder is read in `text`, the VAE in `image` and `decode`: see `RunCounters.loadSeconds`. */
interface PhaseTime {
  readonly phase: Phase;
  /** From 0. */
  readonly clip: number;
  seconds: number;
}

/** The seconds of a run's phases and of its denoising steps, in their order, by the events of its progress. */
export class RunTimes {
  readonly phases: PhaseTime[] = [];
  /** Seconds of each step. */
  readonly steps: number[] = [];
  #since = 0;
  #stepSince = 0;

  /** @param now milliseconds */
  take(event: HeadlessEvent, now = performance.now()): void {
    if (event.type === 'phase') {
      this.#end(now);
      this.phases.push({ phase: event.phase, clip: event.clip, seconds: 0 });
      this.#since = now;
      this.#stepSince = now;
    } else if (event.type === 'step') {
      this.steps.push((now - this.#stepSince) / 1000);
      this.#stepSince = now;
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
