import path from 'node:path';
import {
  decoderKinds,
  type KernelSetting,
  KinoraError,
  kernelSettings,
  type Precision,
  type ProfileName,
  parseParameters,
  precisions,
  profileNames,
  type Size,
  sizes,
} from '../contract';
import { modelFamilies } from '../models';
import { latentSizeOf } from '../pipeline/latents';
import {
  longestClip,
  type MemoryPlan,
  memoryReport,
  planRequestOf,
} from '../pipeline/memory/memory-plan';
import { familyOf } from '../pipeline/open';
import { resolveSampling } from '../pipeline/profiles';
import { oneOf, readGibibytes, readPrecision, runCommand } from './arguments';
import { diskFolder } from './disk-folder';
import { readManifest } from './inputs';
import { root } from './paths';
import { countProfiles, workTable } from './profile-work';

const help = `npm run plan -- MODEL [--size ${sizes.join('|')}] \
           [--precision ${precisions.join('|')}] [--frames N] [--budget GiB] \
           [--kernels ${kernelSettings.join('|')}] [--fast] [--table]

Prints the memory that one clip of the model takes on the GPU, stage by stage, without running it:
all of it on the GPU, or as it is made to fit a budget, and the least it can do with. Below that, the counted work of
each profile, in floating-point operations, and its share of the standard one.
MODEL is an id of public/models, such as wan2.2-ti2v-5b. --fast takes its ultra-fast profile, with its first adapter.
--table prints one line for each of its profiles and precisions instead, and whether reading a streamed block
from disk at 0.8 GB/s takes no longer than a block computes on some GPUs.
`;

const optionTypes = {
  size: { type: 'string', default: sizes[0] },
  precision: { type: 'string' },
  frames: { type: 'string' },
  budget: { type: 'string' },
  kernels: { type: 'string', default: kernelSettings[0] },
  fast: { type: 'boolean', default: false },
  table: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** Bytes per second that a slow SSD gives a browser. */
const diskRate = 0.8e9;

/**
 * What GPUs are expected to sustain, in FLOP/s: with exact kernels, and with the fastest that they have. From the
 * shares of their peaks that lib/gpu/kernels expects; none was measured.
 */
const expectedRates: Readonly<Record<string, readonly [exact: number, fastest: number]>> = {
  'RTX 3060': [6.4e12, 12.4e12],
  'RTX 4070': [14.7e12, 28.1e12],
  'RTX 4090': [41e12, 80e12],
  'RTX 5090': [53e12, 99e12],
  'M3 Max': [7.8e12, 7.8e12],
};

process.exitCode = await runCommand('plan', help, optionTypes, async ({ values, positionals }) => {
  const id = positionals[0] ?? 'wan2.2-ti2v-5b';
  const request: PlanRequest = {
    size: oneOf('--size', sizes, values.size),
    kernels: oneOf('--kernels', kernelSettings, values.kernels),
    profile: values.fast ? 'ultra-fast' : 'standard',
    precision: readPrecision(values.precision),
    frames: values.frames,
  };
  if (values.table) {
    process.stdout.write(await table(id, request));
    return 0;
  }
  const { planner, profiles } = await count(id, request);
  const budget = readGibibytes('--budget', values.budget);
  process.stdout.write(format(id, budget ? planner.fit(budget) : planner.full));
  process.stdout.write(`${line('Full', planner.full)}${line('Least', planner.least)}`);
  process.stdout.write(`\n${workTable(profiles)}`);
  return 0;
});

/** The questions to a model. */
interface PlanRequest {
  readonly size: Size;
  readonly kernels: KernelSetting;
  readonly profile: ProfileName;
  readonly precision: Precision | undefined;
  readonly frames: string | undefined;
}

/** The plan of a clip, the operations of one block in one pass over it, and those of each profile. */
async function count(
  id: string,
  { size, kernels, profile, precision, frames: requestedFrames }: PlanRequest,
) {
  const manifest = await readManifest(id);
  const { frameStride, maxClipFrames } = manifest;
  const frames = Number(requestedFrames ?? maxClipFrames);
  if (!(Number.isInteger(frames) && frames > 0 && (frames - 1) % frameStride === 0)) {
    const sentence = `--frames must be one more than a multiple of ${frameStride}, such as ${maxClipFrames}.`;
    throw new KinoraError('PARAMETER_INVALID', sentence);
  }
  const models = path.join(root, 'public/models');
  const configuration = diskFolder(path.join(models, manifest.base ?? manifest.id));
  const family = familyOf(modelFamilies, manifest);
  const counts = await family.count(precision ?? manifest.precision, configuration);
  const native = longestClip(manifest, size, frames, manifest.profiles[profile]);
  // A new download has the tiny decoder and the first adapter.
  const adapters = { adapter: { source: null, misfit: null } };
  const model = { manifest, decoders: decoderKinds, adapters };
  const sampled = resolveSampling(model, profile, parseParameters({ prompt: id }));
  const request = { ...planRequestOf(sampled.sampling, native), adapters: sampled.adapters };
  const planner = await counts.planMemory({ ...request, kernels });
  const { pass } = counts.computation(latentSizeOf(counts.latents, native), 'full');
  const profiles = countProfiles(manifest, counts, native);
  return { planner, blockFlops: pass.flops / planner.costs.blocks, profiles };
}

/** One line for each size and precision of a model. */
async function table(id: string, request: PlanRequest): Promise<string> {
  const { choices, precision } = await readManifest(id);
  const offered = choices.length > 0 ? choices.map((choice) => choice.precision) : [precision];
  const selected = request.precision === undefined ? offered : [request.precision];
  const lines: string[] = [];
  for (const profile of profileNames) {
    for (const each of selected) {
      const { planner, blockFlops } = await count(id, { ...request, profile, precision: each });
      const { width, height, frames } = planner.costs.native;
      const { blockBytes } = planner.costs.denoising[0];
      const read = blockBytes / diskRate;
      const cells = [
        profile,
        each,
        ...[planner.full, planner.least].map(({ peak }) => `${(peak / 2 ** 30).toFixed(1)} GiB`),
        `${(blockBytes / 1e6).toFixed(0)} MB`,
        `${read.toFixed(2)} s`,
        ...Object.values(expectedRates).map((rates) =>
          rates.map((rate) => secondsOf(blockFlops / rate, read)).join(' '),
        ),
      ];
      lines.push(row(`${width}×${height}×${frames}`, cells));
    }
  }
  const columns = [
    'profile',
    'precision',
    'resident',
    'streamed',
    'block',
    'read',
    ...Object.keys(expectedRates),
  ];
  return (
    `${id}\n${row('clip', columns)}${lines.join('')}` +
    'Under each GPU: seconds that a block computes, with exact kernels and with its fastest; "!" where reading takes longer.\n'
  );
}

function row(first: string, cells: readonly string[]): string {
  return `${first.padEnd(14)}${cells.map((cell) => cell.padStart(13)).join('')}\n`;
}

function secondsOf(seconds: number, read: number): string {
  return `${seconds.toFixed(2)}${seconds < read ? '!' : ''}`;
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
