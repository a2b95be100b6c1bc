import { parseArgs } from 'node:util';
import * as ort from 'onnxruntime-web';
import { type Backend, createBackend, type Runtime } from '../../lib/gpu';
import { coverCrop } from '../../lib/video/cover-crop';
import { FrameScaler } from '../../lib/video/frame-scaler';
import { readModelConfig } from '../../lib/wan/config';
import { denoise } from '../../lib/wan/denoise';
import { gaussianNoise } from '../../lib/wan/noise';
import { createScheduler } from '../../lib/wan/scheduler';
import { Transformer } from '../../lib/wan/transformer';
import { createVaeDecoder } from '../../lib/wan/vae';
import { openCheckpoint, quantiseInt8Blocks } from '../../lib/weights';
import { root } from '../browser/stamp';
import { diskFolder } from './disk-folder';

/** One measurement: what ran, and what its work is counted in. */
interface Case {
  readonly name: string;
  readonly unit: string;
  /** Units of work in one run. */
  readonly amount: number;
  run(): unknown;
}

const help = `npm run bench -- [NAME]

Times the hot parts on this machine's CPU: the median of several runs, and the work per second.
NAME runs only the cases whose name contains it.
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { help: { type: 'boolean', default: false } },
});
if (values.help) process.stdout.write(help);
else await main(positionals[0] ?? '');

async function main(filter: string): Promise<void> {
  ort.env.logLevel = 'error';
  const backend = await createBackend('wasm', ort as unknown as Runtime);
  const all = [...plainCases(), ...(await modelCases(backend))];
  process.stdout.write(`${'case'.padEnd(46)}${'median'.padStart(12)}   throughput\n`);
  for (const bench of all.filter(({ name }) => name.includes(filter))) {
    const seconds = await median(bench.run);
    const rate = (bench.amount / seconds).toPrecision(3);
    const time = `${(seconds * 1000).toFixed(1)} ms`;
    process.stdout.write(
      `${bench.name.padEnd(46)}${time.padStart(12)}   ${rate} ${bench.unit}/s\n`,
    );
  }
  await backend.dispose();
}

/** Median of up to 9 runs, or of as many as fit into three seconds; the first one is not counted. */
async function median(run: () => unknown): Promise<number> {
  await run();
  const seconds: number[] = [];
  const end = performance.now() + 3000;
  while (seconds.length < 9 && (seconds.length < 3 || performance.now() < end)) {
    const start = performance.now();
    await run();
    seconds.push((performance.now() - start) / 1000);
  }
  return seconds.sort((a, b) => a - b)[Math.floor(seconds.length / 2)] ?? Number.NaN;
}

function plainCases(): Case[] {
  const noiseCount = 48 * 31 * 44 * 80;
  const [rows, columns] = [3072, 3072];
  const weight = gaussianNoise({ seed: 1, stream: 0, count: rows * columns });
  const photo = { width: 4000, height: 3000, data: new Uint8ClampedArray(4000 * 3000 * 4) };
  const native = { width: 1280, height: 704 };
  const scaler = new FrameScaler(native, { width: 1280, height: 720 });
  const frame = gaussianNoise({ seed: 2, stream: 0, count: 3 * 1280 * 704 });
  return [
    {
      name: 'noise of a 5B clip (1280×704×121)',
      unit: 'values',
      amount: noiseCount,
      run: () => gaussianNoise({ seed: 7, stream: 0, count: noiseCount }),
    },
    {
      name: 'quantise 3072×3072 to 8-bit blocks',
      unit: 'bytes',
      amount: weight.byteLength,
      run: () => quantiseInt8Blocks(weight, rows, columns),
    },
    {
      name: 'photo 12 MP → 1280×704',
      unit: 'photos',
      amount: 1,
      run: () => coverCrop(photo, native.width, native.height),
    },
    {
      name: 'frame 1280×704 → 1280×720',
      unit: 'frames',
      amount: 1,
      run: () => scaler.scale(frame),
    },
  ];
}

/** The tiny model at the size of the goldens' clip, 121 frames of 96×64, on the CPU backend. */
async function modelCases(backend: Backend): Promise<Case[]> {
  const folder = diskFolder(`${root}/e2e/goldens/tiny-wan/model`);
  const config = await readModelConfig(folder);
  const size = { frames: 31, height: 4, width: 6 };
  const values = config.transformer.in_channels * size.height * size.width;
  const noise = gaussianNoise({ seed: 3, stream: 0, count: values * size.frames });
  const text = gaussianNoise({ seed: 4, stream: 0, count: 44 * config.transformer.text_dim });
  const checkpoint = await openCheckpoint(folder, 'transformer');
  const step = async (precision: 'f32' | 'int8'): Promise<Case> => {
    const model = await Transformer.load(backend, checkpoint, config.transformer, { precision });
    return {
      name: `tiny model, 1 guided step, ${precision}`,
      unit: 'steps',
      amount: 1,
      run: () =>
        denoise(backend, model, {
          size,
          held: noise.subarray(0, values),
          noise,
          scheduler: createScheduler({ kind: 'unipc', steps: 1, flowShift: 5 }),
          guidanceScale: 5,
          prompt: text,
          negativePrompt: text,
          maxChunkTokens: 4096,
        }),
    };
  };
  const decoder = await createVaeDecoder(backend, config.vae, await openCheckpoint(folder, 'vae'), {
    latentHeight: size.height,
    latentWidth: size.width,
  });
  const drain = async () => {
    for await (const frame of decoder.decode(noise.subarray(0, values))) void frame;
  };
  await drain();
  return [
    await step('f32'),
    await step('int8'),
    { name: 'tiny model, VAE decode, 1 latent frame', unit: 'frames', amount: 4, run: drain },
  ];
}
