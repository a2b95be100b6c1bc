import {
  formatBytes,
  formatSeconds,
  formatSize,
  outcomeNames,
  phaseNames,
  skipReasons,
} from '../contract';
import type { SkipReason } from '../contract/v3';
import type { ServeReport } from '../worker/api';

/** Shortest time between two lines about steps of one job, in milliseconds. */
const quietMs = 10_000;

/** The lines of a worker without a person: one per event, steps now and then. */
export class WorkerReport {
  #job = '';
  #phase: string | null = null;
  #stepAt = Number.NEGATIVE_INFINITY;
  /** The last line about waiting, which is not said twice. */
  #waiting = '';

  /** @param now milliseconds, monotonic */
  constructor(
    readonly say: (line: string) => void,
    readonly now: () => number = () => performance.now(),
  ) {}

  take(event: ServeReport): void {
    const line = this.#lineOf(event);
    if (line === null) return;
    const waiting = event.type === 'nothing' || event.type === 'gpuBusy';
    if (waiting && line === this.#waiting) return;
    this.#waiting = waiting ? line : '';
    this.say(line);
  }

  #lineOf(event: ServeReport): string | null {
    switch (event.type) {
      case 'connected': {
        const { owner, shared, waiting } = event.identity;
        const whose = shared ? `${owner} and whoever shares` : owner;
        return `connected: takes jobs of ${whose}; ${waiting} waiting`;
      }
      case 'nothing': {
        const [first] = Object.entries(event.skipped);
        if (!first) return 'waiting for jobs';
        const [reason, count] = first;
        const jobs = count === 1 ? '1 job waits' : `${count} jobs wait`;
        return `waiting: ${jobs}, but ${skipReasons[reason as SkipReason]}.`;
      }
      case 'gpuBusy':
        return 'waiting: another tab has the GPU';
      case 'claimed': {
        const { id, attempt, size, duration, loras } = event.job;
        this.#job = id.slice(0, 8);
        this.#phase = null;
        this.#stepAt = Number.NEGATIVE_INFINITY;
        const adapters = loras === 0 ? '' : `, ${loras} LoRA${loras === 1 ? '' : 's'}`;
        const steps = event.parameters.num_inference_steps;
        const video = `${formatSize(size)}, ${duration} s, ${steps} steps${adapters}`;
        return `job ${this.#job} taken, attempt ${attempt}: ${video}`;
      }
      case 'progress': {
        const { phase, step, steps } = event;
        const changed = phase !== this.#phase;
        this.#phase = phase;
        if (phase === null) return null;
        if (phase !== 'denoise') {
          return changed ? `job ${this.#job} ${phaseNames[phase].toLowerCase()}` : null;
        }
        if (step === 0 || (step < steps && this.now() - this.#stepAt < quietMs)) return null;
        this.#stepAt = this.now();
        return `job ${this.#job} step ${step}/${steps}`;
      }
      case 'uploading':
        this.#job = event.job.id.slice(0, 8);
        return `job ${this.#job} sending ${formatBytes(event.bytes)}`;
      case 'ended': {
        const { outcome, seconds, error, safety, prompt } = event.job;
        const why = error ? `: ${error.message} ${error.remedy}` : '';
        const word = outcomeNames[outcome].toLowerCase();
        const check = safety === null || safety === 'off' ? '' : `, safety check: ${safety}`;
        const optimised = prompt === null ? '' : `, prompt: ${prompt}`;
        return `job ${this.#job} ${word} after ${formatSeconds(seconds)}${check}${optimised}${why}`;
      }
      case 'heartbeat':
        return event.answered
          ? null
          : `job ${this.#job}: the server does not answer; the work goes on`;
      case 'paused':
        return event.error ? `paused: ${event.error.message} ${event.error.remedy}` : 'paused';
      case 'unreachable': {
        const seconds = (event.at - Date.now()) / 1000;
        const when = seconds < 1 ? 'now' : `in ${formatSeconds(seconds)}`;
        return `connection lost: ${event.reason} Trying again ${when}.`;
      }
      default:
        return null;
    }
  }
}
