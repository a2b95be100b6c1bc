import { KinoraError, toKinoraError } from '../../../contract';
import { type Backend, probeDevice, Scope, selfTest } from '../../../gpu';
import { assignKernels } from '../../../gpu/kernels/assign';
import { modesOf, tunedFamilies } from '../../../gpu/kernels/families';
import { measurePeak } from '../../../gpu/kernels/peak';
import { type TimeOptions, timeWork } from '../../../gpu/kernels/time';
import { tune } from '../../../gpu/kernels/tune';
import type { LatentSize } from '../../../pipeline/latents';
import { maxPromptTokens } from '../../umt5/text-encoder-config';
import type { ModelConfig } from '../model-config';
import { passFlops, tokensPerFrame } from '../tokens';
import {
  clipOfTokens,
  type Decoder,
  decoderFlops,
  nativeFrame,
  openBlock,
  openDecoder,
  openVideo,
  type SyntheticNetwork,
} from './networks';
import { measureOperator, operators } from './operators';
import { nativeClip, type Projector, project, projectorOf } from './projection';
import type { Measured, Run, SpeedLine, SpeedOptions, SpeedReport } from './report';

export type { SpeedLine, SpeedOptions, SpeedReport } from './report';

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
    return { name: operator.name, usual: 'always', run: (run) => measureOperator(run, operator) };
  }),
  network('block', 'gpu', block),
  network('frame', 'gpu', (run) => decoded(run, 'tiny')),
  network('decoder', 'all', (run) => decoded(run, 'full')),
  network('video', 'gpu', video),
];

function network(name: Measured, usual: Measurement['usual'], of: (run: Run) => Network) {
  return { name, usual, run: (run: Run) => measureNetwork(run, name, of(run)) };
}

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
  model: { readonly id: string; readonly config: ModelConfig },
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

/** A network that is measured in some modes. */
interface Network {
  readonly modes: readonly SpeedLine['mode'][];
  /** For people. */
  readonly size: string;
  readonly flops: number;
  readonly open: () => Promise<SyntheticNetwork>;
  readonly projected: (projector: Projector) => number | null;
  readonly timing: TimeOptions;
}

async function measureNetwork(run: Run, measurement: Measured, network: Network): Promise<void> {
  const { backend, config, report, addLine } = run;
  const { modes, size, flops, open, projected, timing } = network;
  for (const mode of modes) {
    await assignKernels(backend, mode);
    const opened = await open();
    try {
      const repeated = async (times: number) => {
        for (let i = 0; i < times; i++) await opened.run();
        await backend.settle();
      };
      const seconds = await timeWork(repeated, timing);
      const projector = projectorOf(config, report().lines, mode);
      addLine({
        measurement,
        size,
        variant: '',
        mode,
        flops,
        seconds,
        rate: flops / seconds.truest,
        share: null,
        difference: null,
        projected: projector && projected(projector),
        reason: null,
      });
    } finally {
      await opened.dispose();
    }
  }
}

const tokensOf = ({ options, slow }: Run) => options.tokens ?? (slow ? 64 : 4096);

/** Operations of a pass over so many blocks. */
function blockFlops({ transformer }: ModelConfig, size: LatentSize, blocks: number): number {
  const tokens = size.frames * tokensPerFrame(transformer, size);
  return passFlops({ ...transformer, num_layers: blocks }, tokens, maxPromptTokens);
}

function block(run: Run): Network {
  const { backend, config, options, rounds, slow, report } = run;
  const tokens = tokensOf(run);
  const size = clipOfTokens(config.transformer, tokens);
  const { modes } = report();
  return {
    // An emulated GPU takes long for each of them.
    modes: ['runtime', ...(options.all || !slow ? modes : modes.slice(0, 1))],
    size: `${tokens} tokens`,
    flops: blockFlops(config, size, 1),
    open: () => openBlock(backend, config, size),
    projected: (projector) => projector.pass(size, 1),
    timing: { rounds },
  };
}

/** Two latent frames: the first of a clip, and one with a past. */
function decoded({ backend, config, slow, rounds }: Run, decoder: Decoder): Network {
  const size = { ...(slow ? { height: 8, width: 8 } : nativeFrame), frames: 2 };
  const pixels = config.vae.scale_factor_spatial;
  return {
    modes: [backend.compute ? 'exact' : 'runtime'],
    size: `two latent frames of ${size.width * pixels}×${size.height * pixels}`,
    flops: decoderFlops(config, decoder, size),
    open: () => openDecoder(backend, config, decoder, size),
    projected: (projector) => projector.decode(decoder, size),
    timing: { rounds },
  };
}

/** Steps of the measured video: as many as the projection of few steps has. */
const steps = 4;
/** Seconds that the video may take unless everything is asked for. */
const videoSeconds = 30;
/** Latent frames of 1280×704 of clips from 5 seconds to the shortest. */
const clipFrames = [nativeClip.frames, 16, 8, 4, 2];

/**
 * Four steps of all blocks, for each of which the same one is computed, and the small decoder: a clip as long as the
 * time allows. Text encoder and file are not in it.
 */
function video(run: Run): Network {
  const { backend, config, options, slow, report } = run;
  const { transformer } = config;
  const passes = steps * transformer.num_layers;
  const mode = backend.compute ? 'exact' : 'runtime';
  const projected = (projector: Projector, size: LatentSize) => {
    const decode = projector.decode('tiny', size);
    return decode === null ? null : projector.pass(size, passes) + decode;
  };
  const projector = projectorOf(config, report().lines, mode);
  const clips = clipFrames.map((frames) => ({ ...nativeFrame, frames }));
  const fits = (size: LatentSize) =>
    options.all || (projector && (projected(projector, size) ?? Number.NaN) < videoSeconds);
  const size =
    slow || options.tokens !== undefined
      ? clipOfTokens(transformer, tokensOf(run))
      : (clips.find(fits) ?? { ...nativeFrame, frames: 2 });
  return {
    modes: [mode],
    size: `${steps} steps of ${size.frames * tokensPerFrame(transformer, size)} tokens`,
    flops: blockFlops(config, size, passes) + decoderFlops(config, 'tiny', size),
    open: () => openVideo(backend, config, size, passes),
    projected: (of) => projected(of, size),
    timing: { atLeast: 0, rounds: 1, warm: true },
  };
}
