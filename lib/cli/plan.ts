import path from 'node:path';
import {
  type KernelSetting,
  KinoraError,
  kernelSettings,
  precisions,
  type Size,
  sizes,
  toKinoraError,
} from '../contract';
import { modelFamilies } from '../models';
import {
  longestClip,
  type MemoryPlan,
  type MemoryPlanner,
  memoryReport,
} from '../pipeline/memory/plan';
import { familyOf } from '../pipeline/open';
import { readArguments, usageError } from './arguments';
import { diskFolder } from './disk-folder';
import { readManifest } from './inputs';
import { root } from './paths';

const help = `npm run plan -- MODEL [--size ${sizes.join('|')}] \
           [--precision ${precisions.join('|')}] [--frames N] [--budget GiB] \
           [--kernels ${kernelSettings.join('|')}]

Prints the memory that one clip of the model takes on the GPU, stage by stage, without running it:
all of it on the GPU, or as it is made to fit a budget, and the least it can do with.
MODEL is an id of public/models, such as wan2.2-ti2v-5b.
`;

const optionTypes = {
  size: { type: 'string', default: sizes[0] },
  precision: { type: 'string' },
  frames: { type: 'string' },
  budget: { type: 'string' },
  kernels: { type: 'string', default: kernelSettings[0] },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

process.exitCode = await main();

async function main(): Promise<number> {
  try {
    const refuse = (sentence: string) => usageError('plan', sentence);
    const { values, positionals } = readArguments(process.argv.slice(2), optionTypes, refuse);
    if (values.help) {
      process.stdout.write(help);
      return 0;
    }
    const id = positionals[0] ?? 'wan2.2-ti2v-5b';
    const size = sizes.find((name) => name === values.size);
    if (!size) {
      throw new KinoraError('PARAMETER_INVALID', `--size must be one of ${sizes.join(', ')}.`);
    }
    const kernels = kernelSettings.find((setting) => setting === values.kernels);
    if (!kernels) {
      const sentence = `--kernels must be one of ${kernelSettings.join(', ')}.`;
      throw new KinoraError('PARAMETER_INVALID', sentence);
    }
    const planner = await plannerOf(id, size, kernels, values.precision, values.frames);
    const budget = budgetOf(values.budget);
    process.stdout.write(format(id, budget ? planner.fit(budget) : planner.full));
    process.stdout.write(`${line('Full', planner.full)}${line('Least', planner.least)}`);
    return 0;
  } catch (thrown) {
    const error = toKinoraError(thrown);
    process.stderr.write(`${error.code}: ${error.message}\n${error.remedy}\n`);
    return 1;
  }
}

function budgetOf(text: string | undefined): number | null {
  if (text === undefined) return null;
  const gibibytes = Number(text);
  if (!(gibibytes > 0)) {
    throw new KinoraError('PARAMETER_INVALID', '--budget must be a number of GiB, such as 8.');
  }
  return gibibytes * 2 ** 30;
}

async function plannerOf(
  id: string,
  size: Size,
  kernels: KernelSetting,
  precision: string | undefined,
  frames: string | undefined,
): Promise<MemoryPlanner> {
  const wanted = precisions.find((name) => name === precision);
  if (precision !== undefined && !wanted) {
    throw new KinoraError('PARAMETER_INVALID', `--precision must be ${precisions.join(' or ')}.`);
  }
  const manifest = await readManifest(id);
  const { frameStride, maxClipFrames } = manifest;
  const count = frames === undefined ? undefined : Number(frames);
  if (
    count !== undefined &&
    !(Number.isInteger(count) && count > 0 && (count - 1) % frameStride === 0)
  ) {
    const sentence = `--frames must be one more than a multiple of ${frameStride}, such as ${maxClipFrames}.`;
    throw new KinoraError('PARAMETER_INVALID', sentence);
  }
  const models = path.join(root, 'public/models');
  const configuration = diskFolder(path.join(models, manifest.base ?? manifest.id));
  const family = familyOf(modelFamilies, manifest);
  const counts = await family.count(wanted ?? manifest.precision, configuration);
  return counts.planMemory({ native: longestClip(manifest, size, count), kernels });
}

function format(id: string, plan: MemoryPlan): string {
  const columns = ['weights', 'activations', 'caches', 'runtime', 'peak', 'largest'] as const;
  const { name, bytes } = unitFor(plan.peak);
  const cell = (value: number) => (value / bytes).toFixed(2).padStart(12);
  const { width, height, frames } = plan.native;
  const tokens = `${plan.tokens} tokens in chunks of ${plan.chunkTokens}`;
  const lines = [
    `${id} at ${width}×${height}×${frames} in ${plan.precision}: ${tokens}`,
    `${name.padEnd(10)}${columns.map((column) => column.padStart(12)).join('')}`,
    ...plan.stages.map(
      (stage) => stage.stage.padEnd(10) + columns.map((column) => cell(stage[column])).join(''),
    ),
    `${line('Peak', plan)}Each stage frees its memory before the next one. The column "largest" is the most in one buffer.`,
  ];
  return `${lines.join('\n')}\n`;
}

/** One line on what a plan takes and how it fits. */
function line(title: string, plan: MemoryPlan): string {
  const { name, bytes } = unitFor(plan.peak);
  const { residentBlocks, blocks, decodeTiles } = memoryReport(plan, plan.peak, 0);
  const { bufferSets } = plan.residency;
  const streamed = residentBlocks < blocks ? `, the others in ${bufferSets} sets of buffers` : '';
  const tiles = decodeTiles > 1 ? `in ${decodeTiles} tiles` : 'whole frames';
  return (
    `${`${title}:`.padEnd(7)}${(plan.peak / bytes).toFixed(2)} ${name} (${plan.peak} bytes), ` +
    `${residentBlocks} of ${blocks} blocks resident${streamed}, decode ${tiles}\n`
  );
}

function unitFor(bytes: number) {
  return bytes < 2 ** 30 ? { name: 'MiB', bytes: 2 ** 20 } : { name: 'GiB', bytes: 2 ** 30 };
}
