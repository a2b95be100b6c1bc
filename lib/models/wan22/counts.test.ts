import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { demonstrationModel, parseManifest } from '../../contract';
import { parseParameters } from '../../contract/request';
import { RunEstimator } from '../../pipeline/estimate/estimator';
import { stagesOf } from '../../pipeline/estimate/stages';
import { latentSizeOf } from '../../pipeline/latents';
import { resolveSampling } from '../../pipeline/profiles';
import { diskFolder, publicModels } from '../../weights/testing/files';
import { tinyFolder, tinyManifest } from './testing/model';
import { wan22Family } from './wan22';

test('a model that is counted by its configuration is the one that would be opened', async () => {
  const manifest = tinyManifest();
  const opened = await wan22Family.open(manifest, tinyFolder);
  const counted = await wan22Family.count(manifest.precision, tinyFolder);
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
  const counted = await wan22Family.count(manifest.precision, tinyFolder);
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

/**
 * Seconds on two cores of a server.
 */
const firstRuns = { emulated: 720, cpu: 70 } as const;

test.for(Object.entries(firstRuns) as [keyof typeof firstRuns, number][])(
  'a first run of the demonstration model is expected to take about as long as it does: %s',
  async ([device, measured]) => {
    const text = await readFile(`${publicModels}${demonstrationModel}.json`, 'utf8');
    const manifest = parseManifest(JSON.parse(text));
    const folder = diskFolder(publicModels + demonstrationModel);
    const counts = await wan22Family.count(manifest.precision, folder);
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
