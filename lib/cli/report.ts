import {
  type Applied,
  type ColourChange,
  type ColourCorrection,
  formatMemory,
  formatPercent,
  formatSeconds,
  type GenerationResult,
  generalTexts,
  type HeadlessEvent,
  type MemoryReport,
  type PromptOptimization,
  phaseNames,
  phases,
  type Safety,
  type UnverifiedReason,
} from '../contract';
import type { Screen } from './screen';

/** Without a terminal a line every so many frames is enough. */
const framesPerLine = 24;

type Row = [name: string, value: string];

/** Shows the progress of one run, event by event: one bar over all phases, with the time left. */
export class ProgressReport {
  /** Headings that were written; the phase `load` comes before the prompt and before each clip. */
  readonly #headings = new Set<string>();
  #phase = '';
  #tiled = false;
  #share = 0;
  #left = '';
  /** Further text of the bar. */
  #text = '';

  constructor(readonly screen: Screen) {}

  take(event: HeadlessEvent): void {
    if (event.type === 'estimate') this.#onEstimate(event);
    else if (event.type === 'phase') this.#onPhase(event);
    else if (event.type === 'step') this.#onStep(event);
    else if (event.type === 'frame') this.#onFrame(event);
    else if (event.type === 'tile') this.#onTile(event);
    else if (event.type === 'check') this.#onCheck(event);
    else if (event.type === 'input-check') this.screen.line(inputLine(event));
    else if (event.type === 'sampling') this.screen.line(event.sentence);
    else if (event.type === 'kernels') this.screen.line(kernelsLine(event));
    else if (event.type === 'plan') this.screen.line(planLine(event.memory));
    else if (event.type === 'tuning') this.#onTuning(event);
    else if (event.type === 'bytes') this.#draw(`${this.#phase}, ${megabytes(event.bytesDone)}`);
  }

  #onEstimate(event: Extract<HeadlessEvent, { type: 'estimate' }>): void {
    const { share, secondsRemaining } = event;
    this.#share = share;
    this.#left = `about ${formatSeconds(secondsRemaining)} left`;
    this.#draw(this.#text);
  }

  #onPhase(event: Extract<HeadlessEvent, { type: 'phase' }>): void {
    const clip = event.clips > 1 ? ` (clip ${event.clip + 1} of ${event.clips})` : '';
    this.#phase = phaseNames[event.phase];
    this.#text = this.#phase;
    this.#tiled = false;
    const heading = `${this.#phase}${clip}`;
    if (!this.#headings.has(heading)) this.screen.line(heading);
    this.#headings.add(heading);
  }

  #onTuning({ done, total }: Extract<HeadlessEvent, { type: 'tuning' }>): void {
    if (done === 0) this.screen.line('  Measuring this GPU, once');
    this.#draw(`kernel ${Math.min(done + 1, total)} of ${total}`);
  }

  #onStep(event: Extract<HeadlessEvent, { type: 'step' }>): void {
    const pace = `${event.secondsPerStep.toFixed(2)} s per step`;
    this.#show('step', event.step, event.steps, pace, 1);
  }

  #onFrame(event: Extract<HeadlessEvent, { type: 'frame' }>): void {
    // With tiles, the frames of the last one have told it.
    if (!this.#tiled) this.#show('frame', event.frame, event.frames, '', framesPerLine);
  }

  #onTile(event: Extract<HeadlessEvent, { type: 'tile' }>): void {
    this.#tiled = true;
    const { tile, tiles, frame, frames } = event;
    const text = `tile ${tile} of ${tiles}, frame ${frame} of ${frames}`;
    this.#tell(text, frame % framesPerLine === 0 || frame === frames);
  }

  #onCheck(event: Extract<HeadlessEvent, { type: 'check' }>): void {
    this.#show('square', event.done, event.total, '', event.total);
  }

  #show(unit: string, done: number, total: number, note: string, every: number): void {
    const count = `${unit} ${done} of ${total}`;
    const text = [count, note].filter(Boolean).join(', ');
    this.#tell(text, done % every === 0 || done === total);
  }

  /** In the bar; where nothing can be redrawn, as a line, if it `isLine`. */
  #tell(text: string, isLine: boolean): void {
    if (this.screen.isTTY) this.#draw(text);
    else if (isLine) this.screen.line(`  ${[text, this.#left].filter(Boolean).join(', ')}`);
  }

  #draw(text: string): void {
    this.#text = text;
    if (!this.screen.isTTY) return;
    const parts = [formatPercent(this.#share), this.#left, text];
    this.screen.bar(this.#share, parts.filter(Boolean).join(', '));
  }
}

/** How the colours of a clip were led back to those of the one before. */
function coloursRow({ clip, encoding, drift }: ColourCorrection): Row {
  const text = ({ gain, offset }: ColourChange) =>
    gain.map((g, c) => `${g.toFixed(2)}·v${(offset[c] ?? 0).toFixed(1).replace(/^(?!-)/, '+')}`);
  const of = (change: ColourChange) => text(change).join(', ');
  return ['colours', `clip ${clip + 1}: ${of(encoding)}; half of ${of(drift)} (red, green, blue)`];
}

/** The kernels that compute in place of those that were asked for. */
function kernelsLine(event: Extract<HeadlessEvent, { type: 'kernels' }>): string {
  const { asked, computes, reason } = event;
  if (computes === 'exact') {
    return `This GPU has no kernels for --kernels ${asked}, or is slower with them: exact kernels compute the video.`;
  }
  const sentence = reason ?? generalTexts('KERNELS_UNAVAILABLE').message;
  return `${sentence} ONNX Runtime does, which is slower.`;
}

/** What the safety checker says of the image, before the video is computed. */
function inputLine({ score, flagged }: Extract<HeadlessEvent, { type: 'input-check' }>): string {
  if (score === null) return 'Image: the safety checker failed.';
  const verdict = flagged ? 'flagged as unsafe; the video may be flagged too' : 'clear';
  return `Image: ${verdict} (${scoreText(score)}).`;
}

/** How a run fits the memory of the device, in one line. */
export function planLine(memory: MemoryReport): string {
  const again = memory.replans > 0 ? 'Memory ran out; planned smaller: ' : 'Memory: ';
  return again + memoryText(memory);
}

function memoryText(memory: MemoryReport): string {
  const { peak, budget, budgetSet, blocks, residentBlocks, decodeTiles } = memory;
  const streamed = blocks - residentBlocks;
  return [
    budgetSet ? `${formatMemory(peak)} of ${formatMemory(budget)}` : formatMemory(peak),
    streamed === 0
      ? `all ${blocks} blocks on the device`
      : `${residentBlocks} of ${blocks} blocks on the device, ${streamed} streamed in each step`,
    decodeTiles === 1 ? 'decode in one piece' : `decode in ${decodeTiles} tiles`,
  ].join(', ');
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
    ...(result.profile ? [['profile', result.profile] as [string, string]] : []),
    ...(result.applied ? appliedRows(result.applied) : []),
    ...(result.memory ? [['memory', memoryText(result.memory)] as [string, string]] : []),
    ['seed', String(result.seed)],
    ...(result.colours ?? []).map(coloursRow),
    ...(result.safety ? safetyRows(result.safety) : []),
    ...(result.promptOptimization ? promptRows(result.promptOptimization) : []),
    ...[...phases, 'total' as const].flatMap((name): [string, string][] => {
      const seconds = result.timings[name];
      const title = name === 'total' ? 'Total' : phaseNames[name];
      return seconds === undefined ? [] : [[title, `${seconds.toFixed(2).padStart(7)} s`]];
    }),
  ];
  return rows.map(([name, value]) => `${name.padEnd(15)} ${value}`).join('\n');
}

/** Sampling and decoding of the video in one line. */
function appliedRows({
  steps,
  guidance_scale,
  scheduler,
  adapter,
  cache,
  decoder,
}: Applied): Row[] {
  const strength = adapter?.strength === undefined ? '' : ` at ${adapter.strength}`;
  const parts = [
    `${steps} steps by ${scheduler}`,
    guidance_scale === 1 ? 'no guidance' : `guidance ${guidance_scale}`,
    adapter && `${adapter.name}${strength} (${adapter.licence.name})`,
    cache !== 'none' && cache,
    `${decoder} decoder`,
  ];
  return [['applied', parts.filter(Boolean).join(', ')]];
}

/** What the safety checker says, in one line. */
function safetyRows({ status, reason, score, input, threshold, frames, model }: Safety): Row[] {
  if (status === 'off') return [['safety', 'not checked']];
  if (status === 'unverified') return [['safety', `no verdict: ${unverified[reason ?? 'failed']}`]];
  const numbers = `${scoreText(score)} of ${frames.length} frames, ${scoreText(input)} of the image`;
  return [['safety', `${status}: ${numbers}; ${threshold} flags (${model})`]];
}

const unverified: Readonly<Record<UnverifiedReason, string>> = {
  missing: 'the safety checker is not installed',
  failed: 'the safety checker failed',
};

function scoreText(score: number | null): string {
  return score === null ? 'no score' : score.toFixed(2);
}

/** The prompt as it was given, and what became of it. */
function promptRows(record: PromptOptimization): Row[] {
  const { status, original, text, reasons, model } = record;
  const why = reasons.length > 0 ? ` (${reasons.join('; ')})` : '';
  return [
    ['prompt', original],
    ['text', text === original ? 'the same' : text],
    ['by', `${model ?? 'no language model'}: ${status}${why}`],
  ];
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
