import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import * as ort from 'onnxruntime-web';
import { KinoraError, type ModelManifest, parameterRanges, parseManifest } from '../../../contract';
import { createBackend, type Runtime } from '../../../gpu';
import { measureTinyDecoder, wanBenchmarkStages } from '../../../models/wan/benchmark/stages';
import {
  type ProfileWork,
  profileWork,
  publishedAdapter,
  type WorkRequest,
} from '../../../models/wan22/benchmark/work';
import { type ModelConfig, readModelConfig } from '../../../models/wan22/config';
import { type BenchmarkOptions, benchmarkModel } from '../../../pipeline/benchmark';
import { latentFrames } from '../../../pipeline/latents';
import { longestClip } from '../../../pipeline/memory/plan';
import { diskFolder } from '../../disk-folder';
import { fromUser, root } from '../../paths';

const help = `npm run bench -- profiles [--json FILE]

Counts what a video of wan2.2-ti2v-5b takes under each profile: 1280×704, 121 frames, 30 steps with
guidance. Then measures one transformer block, one level of each decoder on a few tokens with random
weights, and scales their rates by the counted work. The times are those of this machine's CPU.
`;

const modelId = 'wan2.2-ti2v-5b';

/** What is measured: enough to fill the CPU, in a few seconds each. */
const measured = {
  layers: 1,
  tokens: 256,
  textTokens: 128,
  latent: { height: 8, width: 8 },
  level: 0,
  precision: 'int8',
  passes: 3,
  maxChunkTokens: 4096,
  kernels: 'runtime',
} as const satisfies BenchmarkOptions;

/** Floating-point operations per second of the parts of a run. */
interface Rates {
  readonly denoiser: number;
  readonly full: number;
  readonly tiny: number;
}

/** Counted work of the profiles, and what it comes to at measured rates. */
export async function benchProfiles(args: readonly string[]): Promise<void> {
  const { values } = parse(args);
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const models = path.join(root, 'public/models');
  const text = await readFile(path.join(models, `${modelId}.json`), 'utf8');
  const manifest = parseManifest(JSON.parse(text));
  const config = await readModelConfig(diskFolder(path.join(models, modelId)));
  const work = profilesOf(manifest, config);
  const rates = await measureRates(config);
  const rows = work.map(({ name, counted }) => row(name, counted, rates));
  const total = (counted: ProfileWork) => counted.sampling + counted.decode;
  const [first] = work;
  if (!first) throw new TypeError('there are no profiles');
  const shares = work.map(({ counted }) => total(counted) / total(first.counted));
  const lines = rows.map((line, i) => `${line}${percent(shares[i])}${percent(timeShare(i))}`);
  function timeShare(i: number): number {
    const seconds = ({ sampling, decode, resolved }: ProfileWork) =>
      sampling / rates.denoiser + decode / rates[resolved.applied.decoder];
    const counted = work[i]?.counted;
    return counted ? seconds(counted) / seconds(first?.counted ?? counted) : Number.NaN;
  }
  process.stdout.write(`${[header, ...lines].join('\n')}\n\n${ratesText(rates)}\n`);
  if (values.json === undefined) return;
  const record = work.map(({ name, counted }, i) => ({ name, ...counted, share: shares[i] }));
  await writeFile(
    fromUser(values.json),
    `${JSON.stringify({ rates, profiles: record }, null, 2)}\n`,
  );
}

function parse(args: readonly string[]) {
  try {
    const options = { json: { type: 'string' }, help: { type: 'boolean' } } as const;
    return parseArgs({ args: [...args], options });
  } catch (cause) {
    throw new KinoraError('PARAMETER_INVALID', (cause as Error).message, { cause });
  }
}

/** Standard, and each way that ultra-fast can go. */
function profilesOf(manifest: ModelManifest, config: ModelConfig) {
  const native = longestClip(manifest, '1280*720');
  const { scale_factor_spatial: space, scale_factor_temporal: time } = config.vae;
  const request: WorkRequest = {
    config,
    manifest,
    size: {
      frames: latentFrames(native.frames, time),
      height: native.height / space,
      width: native.width / space,
    },
    parameters: {
      num_inference_steps: parameterRanges.num_inference_steps.default,
      guidance_scale: parameterRanges.guidance_scale.default,
      flow_shift: parameterRanges.flow_shift.default,
    },
    adapters: {},
  };
  const guidance = manifest.profiles.standard.guidanceAdapter;
  const installed = guidance && { guidance_adapter: publishedAdapter(guidance) };
  const standard = (name: string, options: NonNullable<WorkRequest['options']>) => ({
    name,
    counted: profileWork('standard', { ...request, adapters: installed ?? {}, options }),
  });
  return [
    standard('standard', {}),
    standard('standard, cached', { cache: true }),
    standard('standard, guidance adapter', { guidanceAdapter: true }),
    standard('… cached', { guidanceAdapter: true, cache: true }),
    ...manifest.profiles['ultra-fast'].adapters.map((adapter) => ({
      name: `ultra-fast, ${adapter.name}`,
      counted: profileWork('ultra-fast', {
        ...request,
        adapters: {
          adapter: publishedAdapter(adapter),
          ...(adapter.guidanceAdapter && {
            guidance_adapter: publishedAdapter(adapter.guidanceAdapter),
          }),
        },
      }),
    })),
    { name: 'ultra-fast, no adapter', counted: profileWork('ultra-fast', request) },
  ];
}

async function measureRates(config: ModelConfig): Promise<Rates> {
  ort.env.logLevel = 'error';
  const backend = await createBackend('wasm', { runtime: ort as unknown as Runtime });
  const stages = wanBenchmarkStages(config, measured);
  const results = await benchmarkModel(backend, stages, () => undefined);
  const tiny = await measureTinyDecoder(backend, config, measured);
  await backend.dispose();
  const rateOf = (name: RegExp) =>
    results.find(({ stage }) => name.test(stage))?.flopPerSecond ?? Number.NaN;
  return {
    denoiser: rateOf(/^transformer block$/),
    full: rateOf(/^VAE up block/),
    tiny: tiny.flopPerSecond,
  };
}

const nameWidth = 28;
const columns = ['passes', 'sampling', 'decode', 'time here', 'work', 'time'] as const;
const header = 'profile'.padEnd(nameWidth) + columns.map((name) => name.padStart(13)).join('');

function row(
  name: string,
  { passes, sampling, decode, resolved }: ProfileWork,
  rates: Rates,
): string {
  const seconds = sampling / rates.denoiser + decode / rates[resolved.applied.decoder];
  const cells = [
    String(passes),
    petaflop(sampling),
    petaflop(decode),
    `${(seconds / 3600).toFixed(1)} h`,
  ];
  return name.padEnd(nameWidth) + cells.map((cell) => cell.padStart(13)).join('');
}

function petaflop(flop: number): string {
  return `${(flop / 1e15).toFixed(3)} PFLOP`;
}

function percent(share = Number.NaN): string {
  return `${(100 * share).toFixed(1)} %`.padStart(13);
}

function ratesText({ denoiser, full, tiny }: Rates): string {
  const gigaflop = (rate: number) => `${(rate / 1e9).toFixed(1)} GFLOP/s`;
  return `measured: transformer block ${gigaflop(denoiser)}, VAE level ${gigaflop(full)}, tiny decoder ${gigaflop(tiny)}`;
}
