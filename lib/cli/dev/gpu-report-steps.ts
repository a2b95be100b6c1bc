import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { KernelMode } from '../../gpu/kernels';
import type { KernelReport } from '../../models/wan22/benchmark/kernels';
import {
  reportHead,
  reportTables,
  type Table,
  tableMarkdown,
} from '../../models/wan22/benchmark/kernels/tables';
import type { StageResult } from '../../pipeline/benchmark';
import { root } from '../paths';
import { exitCode, outputOf, startChild, stopTree } from '../process';

/** A command of Kinora that the report runs. It has a process of its own: a driver that fails ends no report. */
export interface Step {
  readonly name: string;
  /** As after `npm run`. */
  readonly command: string;
  /** Where its figures are: in a file that `--json` names, or as lines in standard output. */
  readonly figures: 'file' | 'lines';
  /** After so long it ends, and what it has measured counts. */
  readonly limitMinutes: number;
  /** Left out where the device has no kernels for it. */
  readonly mode?: KernelMode;
  /** Why it is left out where the CPU emulates the GPU. */
  readonly tooSlow?: string;
}

/** What became of a step. */
export interface StepResult {
  readonly name: string;
  readonly command: string;
  readonly outcome: 'done' | 'failed' | 'out of time' | 'left out';
  readonly seconds: number;
  /** Its figures, as far as it came; else what it printed, in lines. */
  readonly output: unknown;
  /** Why it is not done. */
  readonly reason: string;
}

/** The whole report. */
export interface GpuReport {
  readonly date: string;
  /** Version and commit. */
  readonly kinora: string;
  readonly system: string;
  readonly steps: readonly StepResult[];
}

/** What a person chose; sizes are the commands' options of these names. */
export interface ReportOptions {
  /** Every step at its usual sizes, which takes the slower cards an hour. */
  readonly all?: boolean;
  readonly layers?: string | undefined;
  readonly tokens?: string | undefined;
  readonly variants?: string | undefined;
  readonly rounds?: string | undefined;
}

const kernels = 'Self-test and kernels';

const settings = ['exact', 'fast', 'matrix', 'runtime'] as const;
const modeOf = (setting: (typeof settings)[number]) =>
  setting === 'runtime' ? {} : { mode: setting };

/**
 * The steps, in the order of what is worth most if a later one takes the machine down. Unless all are asked for, three
 * minutes: self-test, peak, tuner, each operator by the first variant, a block in each mode, a decoded frame and the
 * forecast; then a layer of each part of the 5B.
 */
export function reportSteps({ all = false, tokens, ...chosen }: ReportOptions): Step[] {
  const usual = all ? { layers: '2' } : { layers: '1', variants: '1', rounds: '2' };
  const { layers, variants, rounds }: ReportOptions = { ...usual, ...chosen };
  const option = (name: string, value: string | undefined) =>
    value === undefined ? '' : ` --${name} ${value}`;
  const few = `${all ? ' --tune' : ''}${option('variants', variants)}${option('rounds', rounds)}`;
  const size = `${option('layers', layers)}${option('tokens', tokens)}`;
  const steps: Step[] = [
    {
      name: kernels,
      command: `bench -- kernels${few}`,
      figures: 'file',
      limitMinutes: all ? 45 : 2,
    },
    ...settings.map(
      (setting): Step => ({
        name: `Parity of the tiny model, ${setting}`,
        command: `parity -- --backend webgpu --kernels ${setting}`,
        figures: 'lines',
        limitMinutes: 20,
        ...modeOf(setting),
      }),
    ),
    ...settings.map(
      (setting): Step => ({
        name: `Parts of the 5B at ${tokens ?? 27_280} tokens, ${setting}`,
        command: `bench -- model --synthetic wan2.2-ti2v-5b --backend webgpu --kernels ${setting}${size}`,
        figures: 'file',
        // Of a clip that a person chose the time is not known.
        limitMinutes: all || tokens !== undefined ? 30 : 1,
        ...modeOf(setting),
        ...(tokens === undefined && {
          tooSlow:
            'The CPU emulates the GPU, which would take hours; --tokens 64 makes it minutes.',
        }),
      }),
    ),
  ];
  const short = (step: Step) =>
    step.name === kernels || (step.command.startsWith('bench -- model') && step.mode === 'exact');
  return all ? steps : steps.filter(short);
}

const scripts: Readonly<Record<string, string>> = {
  bench: 'lib/cli/dev/bench.ts',
  parity: 'lib/cli/dev/parity.ts',
};

/** Runs steps one after another; a step that fails stops none. */
export async function runSteps(
  steps: readonly Step[],
  onResult: (result: StepResult) => Promise<void>,
  run: (step: Step) => Promise<StepResult> = runStep,
): Promise<void> {
  let device: KernelReport | null = null;
  for (const step of steps) {
    const { name, command, mode, tooSlow } = step;
    const missing = device && mode && !device.modes.includes(mode);
    const reason = missing
      ? `This device has no kernels of the mode ${mode}.`
      : device?.device.software && tooSlow;
    const result: StepResult = reason
      ? { name, command, outcome: 'left out', seconds: 0, output: null, reason }
      : await run(step);
    device ??= kernelReport(result);
    await onResult(result);
  }
}

async function runStep({ name, command, figures, limitMinutes }: Step): Promise<StepResult> {
  const [script = '', ...args] = command.split(' ').filter((word) => word !== '--');
  const preload = ['--import', 'tsx/esm', '--import', './lib/cli/dev/prepare.ts'];
  const folder = await mkdtemp(path.join(os.tmpdir(), 'kinora-step-'));
  const file = path.join(folder, 'figures.json');
  const json = figures === 'file' ? ['--json', file] : [];
  const child = startChild([...preload, scripts[script] ?? '', ...args, ...json]);
  // Interrupting the report also ends its step, which is in a process group of its own.
  const onSignal = () => void stopTree(child).finally(() => process.exit(130));
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  try {
    const [said, warned] = [outputOf(child.stdout), outputOf(child.stderr)];
    const start = performance.now();
    const late = delay(limitMinutes * 60_000, 'late' as const, { ref: false });
    const code = await Promise.race([exitCode(child), late]);
    await stopTree(child);
    const seconds = (performance.now() - start) / 1000;
    // A step that has figures may have failed before the first.
    const figuresText = await readFile(file, 'utf8').catch(() => '');
    return {
      name,
      command,
      seconds,
      outcome: code === 0 ? 'done' : code === 'late' ? 'out of time' : 'failed',
      output: parsed(figuresText) ?? anonymous(said()).trimEnd().split('\n'),
      reason:
        code === 'late'
          ? `It was ended after ${limitMinutes} min; the figures are those until then.`
          : code === 0
            ? ''
            : anonymous(warned()).trim(),
    };
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    await rm(folder, { recursive: true, force: true });
  }
}

/** A text without the folders of the person who sends it in. */
function anonymous(text: string): string {
  return text.replaceAll(root, '.').replaceAll(os.homedir(), '~');
}

/** Null where a step has written no figures, or was ended while it wrote them. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The report of the kernels in a step's result, if it is that step's. */
function kernelReport({ name, output }: StepResult): KernelReport | null {
  if (name !== kernels || output === null || Array.isArray(output)) return null;
  return output as KernelReport;
}

/** The report for people, and for an issue. */
export function reportMarkdown({ date, kinora, system, steps }: GpuReport): string {
  const device = steps.map(kernelReport).find((report) => report !== null);
  const parts = [
    reportHead(device, `${system}, ${date.slice(0, 10)}, Kinora ${kinora}`),
    tableMarkdown({
      caption: 'What was run',
      columns: ['step', 'outcome', '#seconds', 'last line'],
      rows: steps.map(({ name, outcome, seconds, output, reason }) => [
        name,
        outcome,
        outcome === 'left out' ? '' : seconds.toFixed(0),
        reason.split('\n').at(-1) || (Array.isArray(output) ? String(output.at(-1)) : ''),
      ]),
    }),
    ...steps
      .filter(({ outcome }) => outcome !== 'left out')
      .flatMap((step) => [
        `## ${step.name}\n\n\`npm run ${step.command}\``,
        ...(step.reason ? [fenced(step.reason.split('\n'))] : []),
        ...stepMarkdown(step),
      ]),
  ];
  return `${parts.join('\n\n')}\n`;
}

const fenced = (lines: readonly string[]) => `\`\`\`\n${lines.join('\n')}\n\`\`\``;

const folded = (lines: readonly string[]) =>
  `<details><summary>Output</summary>\n\n${fenced(lines)}\n\n</details>`;

function stepMarkdown(step: StepResult): string[] {
  const report = kernelReport(step);
  if (report) return reportTables(report).map(tableMarkdown);
  const { output } = step;
  if (Array.isArray(output)) return output.join('') === '' ? [] : [folded(output)];
  const { stages } = (output ?? {}) as { readonly stages?: readonly StageResult[] };
  return stages ? [tableMarkdown(stageTable(stages))] : [];
}

function stageTable(stages: readonly StageResult[]): Table {
  const mega = (bytes: number) => (bytes / 1e6).toFixed(1);
  return {
    caption: 'One layer of each part',
    columns: ['stage', '#passes', '#ms', '#GFLOP', '#GFLOP/s', '#weights, MB', '#peak, MB'],
    rows: stages.map(({ stage, passes, seconds, flop, flopPerSecond, weightBytes, peakBytes }) => [
      stage,
      String(passes),
      (seconds * 1000).toFixed(1),
      (flop / 1e9).toPrecision(4),
      flop > 0 ? (flopPerSecond / 1e9).toPrecision(3) : '',
      mega(weightBytes),
      mega(peakBytes),
    ]),
  };
}
