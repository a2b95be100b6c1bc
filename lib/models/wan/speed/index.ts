import { KinoraError, toKinoraError } from '../../../contract';
import { type Backend, probeDevice, Scope, selfTest } from '../../../gpu';
import type { KernelMode } from '../../../gpu/kernels';
import { assignKernels } from '../../../gpu/kernels/assign';
import { tunedFamilies } from '../../../gpu/kernels/candidates';
import { measurePeak } from '../../../gpu/kernels/peak';
import { type Timing, timeWork } from '../../../gpu/kernels/time';
import { tune } from '../../../gpu/kernels/tune';
import { modesOf } from '../../../gpu/kernels/variants';
import type { LatentSize } from '../../../pipeline/latents';
import { maxPromptTokens } from '../../umt5/config';
import { passFlops } from '../flops';
import type { WanConfig } from '../model';
import { tokensPerFrame } from '../tokens';
import {
  clipOfTokens,
  decoderFlops,
  nativeFrame,
  openBlock,
  openDecoder,
  type SyntheticNetwork,
} from './networks';
import { measureOperator, operators } from './operators';
import { nativeClip, type Projector, project, projectorOf } from './projection';
import type { Measured, SpeedLine, SpeedReport } from './report';

export type { SpeedLine, SpeedReport } from './report';

/** What to measure. Defaults depend on the device: one that the CPU emulates gets less to do. */
export interface SpeedOptions {
  /** Everything, which takes slower cards an hour. */
  readonly all?: boolean;
  /** One measurement, by its name. */
  readonly only?: string;
  /** Tokens of the block, an even number, and then of the video; 4096, and 64 where the CPU computes. */
  readonly tokens?: number;
  /** Variants of each kernel, the best guesses first. */
  readonly variants?: number;
  /** Measurements of each. */
  readonly rounds?: number;
}

/** What a measurement has at hand. */
interface Run {
  readonly backend: Backend;
  readonly config: WanConfig;
  readonly options: SpeedOptions;
  readonly rounds: number;
  /** Whether the CPU computes, or emulates a GPU. */
  readonly slow: boolean;
  /** So far. */
  readonly report: () => SpeedReport;
  readonly add: (part: Partial<SpeedReport>) => void;
  readonly addLine: (line: SpeedLine) => void;
}

interface Measurement {
  readonly name: string;
  /** Where it is measured without being named: everywhere, on a GPU, or only with everything else. */
  readonly usual: 'always' | 'gpu' | 'all';
  run(run: Run): Promise<void>;
}

/** Everything that is measured, in the order of what is worth most if a later one takes the machine down. */
const measurements: readonly Measurement[] = [
  {
    name: 'self-test',
    usual: 'always',
    run: async ({ backend, add }) => add({ selfTest: await selfTest(backend) }),
  },
  { name: 'peak', usual: 'always', run: peak },
  { name: 'tuner', usual: 'gpu', run: tuneModes },
  ...operators.map((operator): Measurement => {
    const run = async (of: Run) => {
      const { backend, options, rounds, slow, report, addLine } = of;
      const { modes, peak: known } = report();
      const { all, variants = all ? (slow ? 2 : Number.POSITIVE_INFINITY) : 1 } = options;
      const how = { modes, variants, rounds, slow, peak: known };
      await measureOperator(backend, operator, how, addLine);
    };
    return { name: operator.name, usual: 'always', run };
  }),
  { name: 'block', usual: 'gpu', run: block },
  { name: 'frame', usual: 'gpu', run: (run) => decoded(run, 'frame', 'tiny') },
  { name: 'decoder', usual: 'all', run: (run) => decoded(run, 'decoder', 'full') },
  { name: 'video', usual: 'gpu', run: video },
];

export const measurementNames: readonly string[] = measurements.map(({ name }) => name);

/** Seconds after which nothing more is begun, unless everything or one thing was asked for. */
const longest = 150;

/**
 * Measures a device at the widths of a model, with random weights: one measurement after another, of which one that
 * fails stops no other.
 *
 * @param open makes the backend; again where a measurement has lost the device
 * @param onReport takes the report so far whenever something is known
 * @throws KinoraError where there is no backend, `PARAMETER_INVALID` for a measurement that there is not
 */
export async function measureSpeed(
  open: () => Promise<Backend>,
  model: { readonly id: string; readonly config: WanConfig },
  options: SpeedOptions,
  onReport: (report: SpeedReport) => void,
): Promise<SpeedReport> {
  const { all = false, only } = options;
  if (only !== undefined && !measurementNames.includes(only)) {
    const names = measurementNames.join(', ');
    throw new KinoraError('PARAMETER_INVALID', `There is no measurement "${only}": ${names}.`);
  }
  let backend = await open();
  const onGpu = backend.kind === 'webgpu';
  const device = onGpu ? await probeDevice() : null;
  const slow = device?.software ?? true;
  let report: SpeedReport = {
    model: model.id,
    date: new Date().toISOString(),
    browser: navigator.userAgent,
    device,
    languageFeatures: onGpu ? [...navigator.gpu.wgslLanguageFeatures].sort() : [],
    modes: backend.compute ? modesOf(backend.compute) : [],
    refused: backend.refused ?? [],
    outcomes: [],
    selfTest: [],
    peak: null,
    tuning: {},
    lines: [],
    projections: [],
  };
  const add = (part: Partial<SpeedReport>) => {
    report = { ...report, ...part };
    onReport(report);
  };
  const addLine = (line: SpeedLine) => {
    const lines = [...report.lines, line];
    add({ lines, projections: project(model.config, lines) });
  };
  add({});
  const begin = performance.now();
  const secondsSince = (start: number) => (performance.now() - start) / 1000;
  try {
    for (const { name, usual, run } of measurements) {
      const isUsual = usual === 'always' || all || (usual === 'gpu' && !slow);
      if (only === undefined ? !isUsual : only !== name) continue;
      const start = performance.now();
      let problem: string | null = null;
      if (only === undefined && !all && secondsSince(begin) > longest) {
        problem = `It was left out: what came before took over ${longest} s.`;
      } else {
        try {
          if (backend.lost) {
            await backend.dispose().catch(() => undefined);
            backend = await open();
          }
          const { rounds = all && !slow ? 5 : 2 } = options;
          const state = { config: model.config, options, rounds, slow, add, addLine };
          await run({ ...state, backend, report: () => report });
        } catch (thrown) {
          problem = toKinoraError(thrown).message;
        }
      }
      add({ outcomes: [...report.outcomes, { name, seconds: secondsSince(start), problem }] });
    }
  } finally {
    await backend.dispose();
  }
  return report;
}

async function peak({ backend, rounds, slow, add }: Run): Promise<void> {
  const { compute } = backend;
  if (!compute) return;
  const measured = await measurePeak(backend, compute, { rounds });
  // An emulated GPU shows that modes are right, not how fast they are.
  if (!slow) compute.peak = measured;
  add({ peak: measured, modes: modesOf(compute) });
}

/** Checks and times the variants of each mode, as before a first video. */
async function tuneModes({ backend, slow, report, add }: Run): Promise<void> {
  const { compute } = backend;
  if (!compute) return;
  for (const mode of report().modes) {
    const { tuning } = report();
    const tried = Object.values(tuning).flatMap((result) => result.tried);
    const known = new Set(tried.map(({ key }) => key));
    const scope = new Scope(backend);
    try {
      const timing = !slow;
      const result = await tune({
        families: tunedFamilies({ backend, compute, mode, timing, scope }).filter(
          ({ candidates }) => !candidates.some(({ key }) => known.has(key)),
        ),
        timing,
        compile: (kernels) => compute.compile(kernels),
        onRate: ({ key }, rate) => compute.rates.set(key, rate),
      });
      add({ tuning: { ...tuning, [mode]: result } });
    } finally {
      scope.dispose();
    }
  }
}

/** Where the CPU computes, kernels of our own compute what is no operator only if everything is asked for. */
function modesFor({ report, options, slow }: Run): readonly KernelMode[] {
  const { modes } = report();
  return options.all || !slow ? modes : modes.slice(0, 1);
}

/** A network in each of some modes: opened, computed once to compile, and timed. */
async function measureNetwork(
  of: Run,
  what: Pick<SpeedLine, 'measurement' | 'size' | 'flops'>,
  modes: readonly SpeedLine['mode'][],
  open: () => Promise<SyntheticNetwork>,
  projected: (projector: Projector) => number | null,
  time = (network: SyntheticNetwork): Promise<Timing> => timeNetwork(of, network),
): Promise<void> {
  const { backend, config, report, addLine } = of;
  for (const mode of modes) {
    await assignKernels(backend, mode);
    const network = await open();
    try {
      const seconds = await time(network);
      const projector = projectorOf(config, report().lines, mode);
      const found = { seconds, rate: what.flops / seconds.truest };
      const unknown = { variant: '', share: null, difference: null, reason: null };
      const projection = projector && projected(projector);
      addLine({ ...what, mode, ...found, ...unknown, projected: projection });
    } finally {
      await network.dispose();
    }
  }
}

function timeNetwork({ backend, rounds }: Run, network: SyntheticNetwork): Promise<Timing> {
  const run = async (times: number) => {
    for (let i = 0; i < times; i++) await network.run();
    await backend.settle();
  };
  return timeWork(run, { rounds });
}

const tokensOf = ({ options, slow }: Run) => options.tokens ?? (slow ? 64 : 4096);

function blockFlops({ transformer }: WanConfig, size: LatentSize): number {
  const tokens = size.frames * tokensPerFrame(transformer, size);
  return passFlops({ ...transformer, num_layers: 1 }, tokens, maxPromptTokens);
}

async function block(run: Run): Promise<void> {
  const { backend, config } = run;
  const tokens = tokensOf(run);
  const size = clipOfTokens(config.transformer, tokens);
  const what = {
    measurement: 'block',
    size: `${tokens} tokens`,
    flops: blockFlops(config, size),
  } as const;
  await measureNetwork(
    run,
    what,
    ['runtime', ...modesFor(run)],
    () => openBlock(backend, config, size),
    (projector) => projector.pass(size, 1),
  );
}

/** Two latent frames: the first of a clip, and one with a past. */
async function decoded(run: Run, measurement: Measured, decoder: 'tiny' | 'full'): Promise<void> {
  const { backend, config, slow } = run;
  const size = { ...(slow ? { height: 8, width: 8 } : nativeFrame), frames: 2 };
  const pixels = config.vae.scale_factor_spatial;
  await measureNetwork(
    run,
    {
      measurement,
      size: `two latent frames of ${size.width * pixels}×${size.height * pixels}`,
      flops: decoderFlops(config, decoder, size),
    },
    backend.compute ? ['exact'] : ['runtime'],
    () => openDecoder(backend, config, decoder, size),
    (projector) => projector.decode(decoder, size),
  );
}

/** Steps of the measured video: as many as the projection of few steps has. */
const steps = 4;
/** Seconds that the video may take unless everything is asked for. */
const videoSeconds = 30;
/** Latent frames of 1280×704 of clips from 5 seconds to the shortest. */
const clipFrames = [nativeClip.frames, 16, 8, 4, 2];

/**
 * Four steps of all blocks, for each of which the same one is computed, and the small decoder: a clip as long as the
 * time allows. What a run has beside, text encoder and file, is not in it.
 */
async function video(run: Run): Promise<void> {
  const { backend, config, options, slow, report } = run;
  const { transformer } = config;
  const passes = steps * transformer.num_layers;
  const secondsOf = (projector: Projector, size: LatentSize) => {
    const decode = projector.decode('tiny', size);
    return decode === null ? null : steps * projector.pass(size, transformer.num_layers) + decode;
  };
  const mode = backend.compute ? 'exact' : 'runtime';
  const projector = projectorOf(config, report().lines, mode);
  const clips = clipFrames.map((frames) => ({ ...nativeFrame, frames }));
  const fits = (size: LatentSize) =>
    options.all || (projector && (secondsOf(projector, size) ?? Number.NaN) < videoSeconds);
  const size =
    slow || options.tokens !== undefined
      ? clipOfTokens(transformer, tokensOf(run))
      : (clips.find(fits) ?? { ...nativeFrame, frames: 2 });
  const flops = passes * blockFlops(config, size) + decoderFlops(config, 'tiny', size);
  const tokens = size.frames * tokensPerFrame(transformer, size);
  await measureNetwork(
    run,
    { measurement: 'video', size: `${steps} steps of ${tokens} tokens`, flops },
    [mode],
    () => openBlock(backend, config, size),
    (of) => secondsOf(of, size),
    async (network) => {
      await network.run();
      await backend.settle();
      const timed = async (work: () => Promise<void>) => {
        const start = performance.now();
        await work();
        await backend.settle();
        return (performance.now() - start) / 1000;
      };
      const denoised = await timed(async () => {
        for (let i = 0; i < passes; i++) await network.run();
      });
      const decoder = await openDecoder(backend, config, 'tiny', size);
      try {
        // The first one compiles.
        await decoder.run();
        const seconds = denoised + (await timed(decoder.run));
        return { median: seconds, truest: seconds };
      } finally {
        await decoder.dispose();
      }
    },
  );
}
