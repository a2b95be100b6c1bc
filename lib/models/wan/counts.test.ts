import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { demonstrationModel, parseManifest, parseParameters } from '../../contract';
import { elementCount } from '../../gpu';
import { RunEstimator } from '../../pipeline/estimate/estimator';
import { stagesOf } from '../../pipeline/estimate/stages';
import { latentSizeOf } from '../../pipeline/latents';
import { resolveSampling } from '../../pipeline/profiles';
import { diskFolder, publicModels } from '../../weights/testing/files';
import { modelFamilies } from '..';
import { withDecoder } from './config-schemas';
import { readModelConfig } from './model-config';
import { realFolder, tinyFolder, tinyManifest } from './testing/model';
import { decodeCost, decoderGraphs } from './vae';
import { lightDecoderTensors } from './wan-tensors';

test('a model that is counted by its configuration is the one that would be opened', async () => {
  const manifest = tinyManifest();
  const opened = await modelFamilies.wan22.open(manifest, tinyFolder);
  const counted = await modelFamilies.wan22.count(manifest.precision, tinyFolder);
  const native = { ...manifest.nativeSizes['1280*720'], frames: manifest.maxClipFrames };
  const size = latentSizeOf(opened.latents, native);
  expect(latentSizeOf(counted.latents, native)).toEqual(size);
  expect(counted.computation(size, 'full')).toEqual(opened.computation(size, 'full'));
  const [plan, other] = await Promise.all([
    counted.planMemory({ native }),
    opened.planMemory({ native }),
  ]);
  expect(plan.full).toEqual(other.full);
  for (const stage of ['text', 'denoise'] as const) {
    // The checkpoint has its tensors as f32; the store has them in blocks where they fit.
    const ratio = counted.weightBytes(stage) / opened.weightBytes(stage);
    expect(ratio, stage).toBeGreaterThan(0.2);
    expect(ratio, stage).toBeLessThanOrEqual(1.01);
  }
});

test('the factors of an adapter are counted as a run has them: four of their rank at a time', async () => {
  const manifest = tinyManifest();
  const counted = await modelFamilies.wan22.count(manifest.precision, tinyFolder);
  const native = { ...manifest.nativeSizes['1280*720'], frames: manifest.maxClipFrames };
  const peak = async (rank: number) =>
    (
      await counted.planMemory({
        native,
        adapters: [{ repository: 'a/b', path: 'c', scale: 1, rank, bits: 16 }],
      })
    ).full;
  expect(await peak(5)).toEqual(await peak(8));
  expect(await peak(5)).not.toEqual(await peak(4));
});

test('a light decoder of the 5B takes a quarter of the work, and less than half the memory', {
  tags: ['full'],
  timeout: 60_000,
}, async () => {
  const text = await readFile(`${publicModels}wan2.2-ti2v-5b.json`, 'utf8');
  const manifest = parseManifest(JSON.parse(text));
  const counts = await modelFamilies.wan22.count('int8', realFolder);
  const native = { ...manifest.nativeSizes['1280*720'], frames: 121 };
  const size = latentSizeOf(counts.latents, native);
  const flops = (decoder: 'full' | 'light') =>
    counts.computation(size, decoder).decode.flops / 1e12;
  expect(flops('full')).toBeCloseTo(1859, -1);
  expect(flops('light')).toBeCloseTo(466, 0);
  const gibibytes = async (decoder: 'full' | 'light') => {
    const { full } = await counts.planMemory({ native, decoder });
    const stage = full.stages.find((one) => one.stage === 'decode');
    return (stage?.peak ?? 0) / 2 ** 30;
  };
  expect(await gibibytes('full')).toBeCloseTo(4.94, 1);
  expect(await gibibytes('light')).toBeCloseTo(2.22, 1);
  // The file of a quarter of the width, by its own tensors.
  const { vae } = await readModelConfig(realFolder);
  const quarter = decoderGraphs(withDecoder(vae, 256), {
    latentHeight: size.height,
    latentWidth: size.width,
  });
  expect(decodeCost(quarter, size.frames).flops / 1e12).toBeCloseTo(117, 0);
  const source = manifest.sources.find(({ component }) => component === 'light_decoder');
  const tensors = lightDecoderTensors(vae, () => [512]);
  const numbers = [...tensors.values()].reduce((sum, shape) => sum + elementCount(shape), 0);
  expect(source?.fetched).toBe(4 * numbers);
});

/** Seconds on two cores of a server; those of the emulated GPU are 720 of a third of the operations, scaled. */
const firstRuns = { emulated: 2400, cpu: 30 } as const;

test.for(Object.entries(firstRuns) as [keyof typeof firstRuns, number][])(
  'a first run of the demonstration model is expected to take about as long as it does: %s',
  async ([device, measured]) => {
    const text = await readFile(`${publicModels}${demonstrationModel}.json`, 'utf8');
    const manifest = parseManifest(JSON.parse(text));
    const folder = diskFolder(publicModels + demonstrationModel);
    const counts = await modelFamilies.wan22.count(manifest.precision, folder);
    const asked = parseParameters({ prompt: 'a boat', ...manifest.defaults });
    const adapters = { adapter: { source: null, misfit: null } };
    const complete = { manifest, decoders: ['full'] as const, adapters };
    const { sampling } = resolveSampling(complete, 'standard', asked);
    const run = { manifest, counts, sampling, size: '1280*720', frames: 121 } as const;
    const stages = stagesOf({ ...run, finishing: {}, checkedFrames: 0 }, device);
    const seconds = new RunEstimator(stages, {}).secondsLeft();
    expect(seconds).toBeGreaterThan(measured / 2);
    expect(seconds).toBeLessThan(measured * 2);
  },
);
