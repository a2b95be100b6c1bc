import type { HeadlessEvent } from '../../app/headless/api';
import { type GenerationResult, phases } from '../../lib/contract';

/** Where progress goes: a terminal that can redraw a line, or plain lines. */
export interface Output {
  readonly isTTY?: boolean;
  /** Width in characters; 0 where the terminal does not tell. */
  readonly columns?: number;
  write(text: string): unknown;
}

const phaseTitles: Readonly<Record<(typeof phases)[number], string>> = {
  load: 'Loading the model',
  text: 'Reading the prompt',
  image: 'Reading the image',
  denoise: 'Denoising',
  decode: 'Decoding and encoding',
  finish: 'Writing the file',
};

/** Without a terminal a line every so many frames is enough. */
const framesPerLine = 24;
const barWidth = 24;

/** Shows the progress of one run, event by event. */
export class ProgressReport {
  #open = false;
  #phase = '';

  constructor(readonly output: Output) {}

  /** One plain line, above the bar. */
  line(text: string): void {
    this.#close();
    this.output.write(`${text}\n`);
  }

  take(event: HeadlessEvent): void {
    if (event.type === 'phase') this.#onPhase(event);
    else if (event.type === 'step') this.#onStep(event);
    else if (event.type === 'frame') this.#onFrame(event);
    else if (event.type === 'bytes' && this.output.isTTY && event.bytesTotal > 0) {
      this.#bar('load', event.bytesDone / event.bytesTotal, megabytes(event.bytesDone));
    }
  }

  /** Ends an open bar, so that what follows starts on a line of its own. */
  end(): void {
    this.#close();
  }

  #onPhase(event: Extract<HeadlessEvent, { type: 'phase' }>): void {
    const clip = event.clips > 1 ? ` (clip ${event.clip + 1} of ${event.clips})` : '';
    const title = `${phaseTitles[event.phase]}${clip}`;
    if (title === this.#phase) return;
    this.#phase = title;
    this.line(title);
  }

  #onStep(event: Extract<HeadlessEvent, { type: 'step' }>): void {
    const pace = `${event.secondsPerStep.toFixed(2)} s per step`;
    const left = event.secondsRemaining === null ? '' : `, about ${clock(event.secondsRemaining)}`;
    this.#show('step', event.step, event.steps, `${pace}${left}${left && ' left'}`, 1);
  }

  #onFrame(event: Extract<HeadlessEvent, { type: 'frame' }>): void {
    this.#show('frame', event.frame, event.frames, '', framesPerLine);
  }

  #show(unit: string, done: number, total: number, note: string, every: number): void {
    const count = `${unit} ${done} of ${total}`;
    if (this.output.isTTY) this.#bar(count, done / total, note);
    else if (done % every === 0 || done === total) {
      this.output.write(`  ${[count, note].filter(Boolean).join(', ')}\n`);
    }
  }

  #bar(count: string, share: number, note: string): void {
    const filled = Math.round(Math.min(1, Math.max(0, share)) * barWidth);
    const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled);
    const line = `  ${bar} ${count}${note && `, ${note}`}`;
    this.output.write(`\r\u001b[K${line.slice(0, (this.output.columns || 80) - 1)}`);
    this.#open = true;
  }

  #close(): void {
    if (this.#open) this.output.write('\n');
    this.#open = false;
  }
}

/** The last lines of a successful run: path, seed and the time that each stage took. */
export function summary(file: string, result: GenerationResult): string {
  const rows: [string, string][] = [
    ['file', file],
    [
      'video',
      `${result.width}×${result.height}, ${result.frames} frames, H.264 by ${result.encoder}`,
    ],
    ['bytes', megabytes(result.videoBytes)],
    ['model', `${result.model} on ${result.backend}`],
    ['seed', String(result.seed)],
    ...[...phases, 'total' as const].map((name): [string, string] => [
      name,
      `${result.timings[name].toFixed(2).padStart(7)} s`,
    ]),
  ];
  return rows.map(([name, value]) => `${name.padEnd(8)} ${value}`).join('\n');
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

function clock(seconds: number): string {
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
