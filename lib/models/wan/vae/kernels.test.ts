import { beforeAll, describe, expect, test } from 'vitest';
import type { ImageProgram } from '../../../gpu';
import { wrongAccesses } from '../../../gpu/compiler/testing/provenance';
import { type Dispatch, hash, type KernelMode, type Storage } from '../../../gpu/kernels';
import { defaultChoice } from '../../../gpu/kernels/families';
import { completeDevice } from '../../../gpu/kernels/testing/texts';
import type { Graph } from '../../../graph';
import type { VaeConfig } from '../config-schemas';
import { readModelConfig } from '../model-config';
import { realFolder } from '../testing/model';
import { decoderGraphs } from './decoder';
import { kernelWeightSizes } from './kernel-weights';
import { tileGraphs } from './tiled-decoder';
import { compileImages, imageKernels, matchesOf } from './vae-executor';

let config: VaeConfig;
beforeAll(async () => {
  config = (await readModelConfig(realFolder)).vae;
});

interface Setting {
  readonly bindingBytes: number;
  readonly storage: Storage;
}

function compiled(
  graphs: readonly Graph[],
  { bindingBytes, storage }: Setting,
  mode: KernelMode = 'exact',
) {
  const kernels = imageKernels({ ...defaultChoice(completeDevice, mode), storage });
  if (!kernels) throw new Error('the device has no kernels');
  const limits = { workgroupBytes: 2 ** 14, threads: 256, bindingBytes, storageBuffers: 8 };
  return compileImages(kernels, limits, graphs);
}

/** Dispatches of the first four latent frames of a clip. */
function dispatchesOf(program: ImageProgram, graphs: readonly Graph[], storage: Storage) {
  const [first, other] = graphs;
  if (!first || !other) throw new Error('a clip has a first frame and others');
  const weights = new Map(
    [...matchesOf(graphs)].map(([key, match]) => [key, kernelWeightSizes(match, storage)]),
  );
  return program.listWithoutDevice([first, other, other, other], weights);
}

/** How many there are, and a hash of their texts, uniforms and grids in order. */
function summaryOf(jobs: readonly Dispatch[]): string {
  const texts = jobs.map(({ kernel, uniforms, groups }) =>
    JSON.stringify([kernel.key, Object.entries(uniforms).sort(), groups]),
  );
  return `${texts.length}, ${hash(texts.join())}`;
}

/** Those of the attention, which the runtime computed when the others were recorded. */
const isOfAttention = ({ kernel: { name } }: Dispatch) => /plain|softmax|filters→/.test(name);

const whole = { latentHeight: 44, latentWidth: 80 };

describe("the 5B's decoder at 1280×704 as dispatches", () => {
  // Recorded from the code that made them by hand, before there was a compiler. Only another kernel text, or another
  // best guess of a variant, may change them.
  test.each([
    [
      { bindingBytes: 2 ** 27, storage: 'f16' },
      ['67, 0d80cf72', '182, 14c78ea6', '182, 61c5baa7', '182, 1f87882b'],
      '473, df2bc8f1',
    ],
    [
      { bindingBytes: 2 ** 30, storage: 'f16' },
      ['63, fda09b26', '166, a5bd79bb', '166, 7b52e157', '166, 808e220b'],
      '473, df2bc8f1',
    ],
    [
      { bindingBytes: 2 ** 30, storage: 'f32' },
      ['63, f9c5c3ae', '166, 8809672a', '166, 1f11b5ae', '166, 1169da06'],
      '473, 398e3468',
    ],
  ] as const)('%o: as they were, in whole frames and in tiles', (setting, frames, tiles) => {
    const graphs = decoderGraphs(config, whole);
    const lists = dispatchesOf(compiled(graphs, setting), graphs, setting.storage);
    const own = lists.map((jobs) => jobs.filter((job) => !isOfAttention(job)));
    expect(own.map(summaryOf)).toEqual(frames);
    expect(lists.map((jobs) => jobs.filter(isOfAttention).length)).toEqual([8, 8, 8, 8]);
    const tile = tileGraphs(config, { latentHeight: 20, latentWidth: 24 });
    const program = compiled(tile, setting);
    expect(summaryOf(dispatchesOf(program, tile, setting.storage).flat())).toBe(tiles);
  });

  test('matrix units compute 99.5 % of it in the mode matrix, 3×3 in windows', () => {
    const graphs = decoderGraphs(config, whole);
    const program = compiled(graphs, { bindingBytes: 2 ** 30, storage: 'f16' }, 'matrix');
    const jobs = dispatchesOf(program, graphs, 'f16').flat();
    const flopsOf = (some: readonly Dispatch[]) => some.reduce((sum, { flops }) => sum + flops, 0);
    const ofMatrices = jobs.filter(({ kernel }) => kernel.mode === 'matrix');
    expect(flopsOf(ofMatrices) / flopsOf(jobs)).toBeGreaterThan(0.995);
    for (const { kernel, uniforms } of ofMatrices) {
      expect(kernel.name.includes(' window ')).toBe(uniforms.kernelWidth === 3);
    }
    // Weights in f32 are not rounded.
    const precise = compiled(graphs, { bindingBytes: 2 ** 30, storage: 'f32' }, 'matrix');
    const exact = dispatchesOf(precise, graphs, 'f32').flat();
    expect(exact.every(({ kernel }) => kernel.mode === 'exact')).toBe(true);
  });

  test('447 MB of images, 3,686 of frames of the past, and every read sees what was written for it', () => {
    const graphs = decoderGraphs(config, whole);
    const setting = { bindingBytes: 2 ** 27, storage: 'f16' } as const;
    const program = compiled(graphs, setting);
    const megabytes = (all: readonly number[]) => all.reduce((sum, bytes) => sum + bytes, 0) / 1e6;
    expect(megabytes(program.bins.map(({ bytes }) => bytes))).toBeLessThan(447.1);
    expect(megabytes(program.frames)).toBeLessThan(3686.3);
    expect(wrongAccesses(dispatchesOf(program, graphs, setting.storage).flat())).toEqual([]);
  });
});
