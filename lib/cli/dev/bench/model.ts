import { writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import * as ort from 'onnxruntime-web';
import {
  KinoraError,
  type ModelManifest,
  parameterRanges,
  parseManifest,
  profileNames,
} from '../../../contract';
import { createBackend, type Runtime } from '../../../gpu';
import { modelFamilies } from '../../../models';
import { modelChecks } from '../../../models/checks';
import {
  type BenchmarkFamily,
  type BenchmarkOptions,
  benchmarkModel,
  type StageResult,
} from '../../../pipeline/benchmark';
import { type ClipSize, latentSizeOf } from '../../../pipeline/latents';
import { longestClip, type MemoryPlan } from '../../../pipeline/memory/plan';
import type { ModelFamily } from '../../../pipeline/model';
import { familyOf } from '../../../pipeline/open';
import { resolveSampling } from '../../../pipeline/profiles';
import { checkCost, checkerBenchmark } from '../../../safety/benchmark';
import type { ModelFolder } from '../../../weights';
import { diskFolder } from '../../disk-folder';
import { fromUser, root } from '../../paths';
import { withBarePage } from '../bare-page';
import { modelHelp, parseModelOptions } from './model-options';

/** Real widths, random weights: how fast a model's parts are and what memory they need. */
export async function benchModel(args: readonly string[]): Promise<void> {
  const options = parseModelOptions(args);
  if (options === 'help') {
    process.stdout.write(modelHelp);
    return;
  }
  const { manifest, family, configuration } = await openConfiguration(options.model);
  const precision = options.precision ?? manifest.precision;
  const stages: BenchmarkOptions = { ...options.stages, precision };
  const silent = options.json === '-';
  const print = (text: string) => silent || process.stdout.write(`${text}\n`);
  const { layers, tokens, textTokens, passes } = stages;
  print(
    `${options.model} in ${precision} on ${options.backend}, kernels ${stages.kernels}: ${layers} × ${tokens} tokens, ` +
      `text of ${textTokens}, median of ${passes}`,
  );
  print(header);
  const { model, backend, json } = options;
  const known: StageResult[] = [];
  const write = (results: StageResult[], plans?: Readonly<Record<string, MemoryPlan>>) => {
    if (json === undefined) return;
    const record = { model, backend, options: stages, stages: results, ...(plans && { plans }) };
    const text = `${JSON.stringify(record, null, 2)}\n`;
    if (!silent) writeFileSync(fromUser(json), text);
    else if (plans) process.stdout.write(text);
  };
  const onResult = (result: StageResult) => {
    known.push(result);
    print(line(result));
    // At once: the next stage may take the machine down.
    write(known);
  };
  const results = await (backend === 'wasm'
    ? inNode(familyOf(modelChecks, manifest), configuration, stages, onResult)
    : inChromium(model, stages, onResult));
  const native = longestClip(manifest, '1280*720');
  const counts = await family.count(precision, configuration);
  const planner = await counts.planMemory({ native, kernels: stages.kernels });
  const plans = { full: planner.full, least: planner.least };
  print(`\n${planTable(plans)}`);
  const { pass } = counts.computation(latentSizeOf(counts.latents, native), 'full');
  print(`\n${checkLine(manifest, native, pass.flops)}`);
  write(results, plans);
}

async function openConfiguration(id: string): Promise<{
  manifest: ModelManifest;
  family: ModelFamily;
  configuration: ModelFolder;
}> {
  const models = path.join(root, 'public/models');
  const file = path.join(models, `${path.basename(id)}.json`);
  const text = await readFile(file, 'utf8').catch((cause) => {
    throw new KinoraError('MODEL_UNKNOWN', `There is no model "${id}".`, { cause });
  });
  const manifest = parseManifest(JSON.parse(text));
  const configuration = diskFolder(path.join(models, manifest.base ?? manifest.id));
  return { manifest, family: familyOf(modelFamilies, manifest), configuration };
}

async function inNode(
  family: BenchmarkFamily,
  configuration: ModelFolder,
  options: BenchmarkOptions,
  onResult: (result: StageResult) => void,
): Promise<StageResult[]> {
  ort.env.logLevel = 'error';
  const backend = await createBackend('wasm', { runtime: ort as unknown as Runtime });
  const results = await benchmarkModel(
    backend,
    [...(await family.benchmarkStages(configuration, options)), checkerBenchmark(options)],
    onResult,
  );
  await backend.dispose();
  return results;
}

async function inChromium(
  model: string,
  options: BenchmarkOptions,
  onResult: (result: StageResult) => void,
): Promise<StageResult[]> {
  const outcome = await withBarePage(
    'bench',
    (page) => page.exposeFunction('kinoraBenchResult', onResult),
    (page) =>
      page.evaluate(
        ([id, stages]) => window.kinoraBench?.(id, stages) ?? 'The page is not ready.',
        [model, options] as const,
      ),
  );
  if (typeof outcome === 'string') throw new KinoraError('INTERNAL', outcome);
  return outcome;
}

const stageWidth = 60;
const columns = ['time', 'GFLOP', 'GFLOP/s', 'weights', 'activations', 'peak'] as const;
const header = `${'stage'.padEnd(stageWidth)}${columns.map((name) => name.padStart(12)).join('')}`;

function line(result: StageResult): string {
  const cells = [
    `${(result.seconds * 1000).toFixed(1)} ms`,
    (result.flop / 1e9).toPrecision(4),
    (result.flopPerSecond / 1e9).toPrecision(3),
    megabytes(result.weightBytes),
    megabytes(result.activationBytes),
    megabytes(result.peakBytes),
  ];
  return result.stage.padEnd(stageWidth) + cells.map((cell) => cell.padStart(12)).join('');
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

const defaultParameters = {
  num_inference_steps: parameterRanges.num_inference_steps.default,
  guidance_scale: parameterRanges.guidance_scale.default,
  flow_shift: parameterRanges.flow_shift.default,
};

/** What the safety check adds to a run: its share of the denoising alone, so that the true one is smaller. */
function checkLine(manifest: ModelManifest, native: ClipSize, passFlop: number): string {
  const { squares, flop, bytes } = checkCost(native);
  // As where its tiny decoder and the first adapter of its profiles are installed.
  const adapters = { adapter: { source: null, misfit: null } };
  const model = { manifest, decoders: ['full', 'tiny'], adapters } as const;
  const shares = profileNames.map((name) => {
    const { steps, guidanceScale } = resolveSampling(model, name, defaultParameters).sampling;
    const denoising = steps * (guidanceScale > 1 ? 2 : 1) * passFlop;
    return `${((100 * flop) / denoising).toPrecision(2)} % (${name})`;
  });
  return (
    `safety check of ${native.frames} frames: ${squares} squares, ${(flop / 1e12).toPrecision(2)} TFLOP, ` +
    `${megabytes(bytes)} kept; at most ${shares.join(', ')} of a run`
  );
}

/** Peak of each stage with everything resident, and with as little as possible. */
function planTable({ full, least }: { full: MemoryPlan; least: MemoryPlan }): string {
  const { width, height, frames } = full.native;
  const gibibytes = (bytes = 0) => `${(bytes / 2 ** 30).toFixed(2)} GiB`.padStart(12);
  const rows = full.stages.map(
    ({ stage, peak }) =>
      stage.padEnd(stageWidth) +
      gibibytes(peak) +
      gibibytes(least.stages.find((other) => other.stage === stage)?.peak),
  );
  const title = `plan of ${width}×${height}×${frames}`;
  return [
    `${title.padEnd(stageWidth)}${'full'.padStart(12)}${'least'.padStart(12)}`,
    ...rows,
    `${'peak'.padEnd(stageWidth)}${gibibytes(full.peak)}${gibibytes(least.peak)}`,
  ].join('\n');
}
