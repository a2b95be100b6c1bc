import { setTimeout as delay } from 'node:timers/promises';
import type { KernelReport } from '../models/wan22/benchmark/kernels';
import { deviceLine, reportTables, tableMarkdown } from './bench/kernel-tables';
import { exitCode, outputOf, startChild, stopTree } from './process';

/** A command of Kinora that the report runs. It has a process of its own: a driver that fails ends no report. */
export interface Step {
  readonly name: string;
  /** As after `npm run`. */
  readonly command: string;
  /** Where it stands for JSON, standard output is that. */
  readonly json: boolean;
  readonly limitMinutes: number;
  /** Why it is left out where the CPU emulates the GPU. */
  readonly tooSlow?: string;
}

/** What became of a step. */
export interface StepResult {
  readonly name: string;
  readonly command: string;
  readonly outcome: 'done' | 'failed' | 'left out';
  readonly seconds: number;
  /** Parsed, for a step with JSON; else lines. */
  readonly output: unknown;
  /** Why it failed or was left out. */
  readonly reason: string;
}

/** The whole report. */
export interface GpuReport {
  readonly date: string;
  readonly system: string;
  readonly steps: readonly StepResult[];
}

const kernels: Step = {
  name: 'Self-test, tuner and kernels',
  command: 'bench -- kernels --tune --json -',
  json: true,
  limitMinutes: 15,
};

const tuner: Step = {
  name: 'Tuner',
  command: 'bench -- tuner',
  json: true,
  limitMinutes: 5,
};

const parity = (mode: string): Step => ({
  name: `Parity of the tiny model, ${mode}`,
  command: `parity -- --backend webgpu --kernels ${mode}`,
  json: false,
  limitMinutes: 20,
});

const synthetic = (mode: string): Step => ({
  name: `Blocks of the 5B at 1280×704×121, ${mode}`,
  command: `bench -- model --synthetic wan2.2-ti2v-5b --backend webgpu --kernels ${mode} --layers 2 --tokens 27280 --latent 44x80 --json -`,
  json: true,
  limitMinutes: 30,
  tooSlow: 'The CPU emulates the GPU, on which this would take hours.',
});

/** In the order of what is worth most, if a later one takes the machine down. */
export const reportSteps: readonly Step[] = [
  kernels,
  tuner,
  ...['exact', 'fast', 'runtime'].map(parity),
  ...['exact', 'fast', 'runtime'].map(synthetic),
];

const scripts: Readonly<Record<string, string>> = {
  bench: 'lib/cli/bench.ts',
  parity: 'lib/cli/parity.ts',
};

/** Runs steps one after another; a step that fails stops none. */
export async function runSteps(
  steps: readonly Step[],
  onResult: (result: StepResult) => Promise<void>,
  run: (step: Step) => Promise<StepResult> = runStep,
): Promise<void> {
  let software = false;
  for (const step of steps) {
    const { name, command, tooSlow } = step;
    const skipped = software && tooSlow;
    const result: StepResult = skipped
      ? { name, command, outcome: 'left out', seconds: 0, output: null, reason: tooSlow }
      : await run(step);
    software ||= kernelReport(result)?.device.software === true;
    await onResult(result);
  }
}

async function runStep({ name, command, json, limitMinutes }: Step): Promise<StepResult> {
  const [script = '', ...args] = command.split(' ').filter((word) => word !== '--');
  const preload = ['--import', 'tsx/esm', '--import', './lib/cli/prepare.ts'];
  const child = startChild([...preload, scripts[script] ?? '', ...args]);
  const [said, warned] = [outputOf(child.stdout), outputOf(child.stderr)];
  const start = performance.now();
  const late = delay(limitMinutes * 60_000, 'late' as const, { ref: false });
  const code = await Promise.race([exitCode(child), late]);
  await stopTree(child);
  const seconds = (performance.now() - start) / 1000;
  const lines = said().trimEnd().split('\n');
  const result = { name, command, seconds };
  if (code === 'late') {
    const reason = `It had not ended after ${limitMinutes} minutes.`;
    return { ...result, outcome: 'failed', output: lines, reason };
  }
  const output = json ? parsed(said()) : lines;
  const reason = code === 0 ? '' : warned().trim();
  return { ...result, outcome: code === 0 ? 'done' : 'failed', output, reason };
}

/** The JSON in a text that may begin with other lines. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text.slice(text.indexOf('{')));
  } catch {
    return text;
  }
}

/** The report of the kernels in a step's result, if it is that step's. */
function kernelReport({ name, outcome, output }: StepResult): KernelReport | null {
  return name === kernels.name && outcome === 'done' ? (output as KernelReport) : null;
}

interface StageTable {
  readonly stages?: readonly { stage: string; seconds: number; flopPerSecond: number }[];
}

/** The report for people, and for an issue. */
export function reportMarkdown({ date, system, steps }: GpuReport): string {
  const device = steps.map(kernelReport).find((report) => report !== null);
  const parts = [
    '# Kinora on a graphics card',
    `${device ? deviceLine(device) : 'The device is not known.'}  \n${system}, ${date.slice(0, 10)}`,
    ...steps.flatMap((step) => {
      const { name, command, outcome, seconds, reason } = step;
      const took = outcome === 'left out' ? '' : ` after ${seconds.toFixed(0)} s`;
      const head = `## ${name}\n\n\`npm run ${command}\`: ${outcome}${took}. ${reason}`.trimEnd();
      return [head, ...stepMarkdown(step)];
    }),
  ];
  return `${parts.join('\n\n')}\n`;
}

function stepMarkdown(step: StepResult): string[] {
  const report = kernelReport(step);
  if (report) return reportTables(report).map(tableMarkdown);
  const { output } = step;
  if (Array.isArray(output) && output.join('') === '') return [];
  if (Array.isArray(output)) return [`\`\`\`\n${output.join('\n')}\n\`\`\``];
  if (step.name === tuner.name && output !== null) {
    return [`\`\`\`json\n${JSON.stringify(output, null, 2)}\n\`\`\``];
  }
  const stages = (output as StageTable | null)?.stages;
  if (!stages) return [];
  const rows = stages.map(({ stage, seconds, flopPerSecond }) => [
    stage,
    (seconds * 1000).toPrecision(4),
    (flopPerSecond / 1e9).toPrecision(3),
  ]);
  const columns = ['stage', '#ms', '#GFLOP/s'];
  return [tableMarkdown({ caption: 'One layer of each stage', columns, rows })];
}
