/** Counts of waits for the device that hold on every backend; run in Node and in Chromium. */
import { expect, test } from 'vitest';
import { type Backend, selfTest } from '../../../gpu';
import { allResident, type Residency } from '../../../pipeline/memory/memory-plan';
import type { StepCache } from '../../../pipeline/step-cache';
import { type ModelFolder, openSafetensors } from '../../../weights';
import { openCheckpoint } from '../../../weights/testing/checkpoint';
import { encodePrompts } from '../../umt5/text-encoder';
import { readModelConfig } from '../model-config';
import { createTinyDecoder } from '../tiny-decoder';
import { Transformer } from '../transformer';
import { createVaeDecoder, encodeFirstFrame } from '../vae';
import { denoiseTokens, type TokenDenoising, tokenRequest, values } from './denoise';

const twoSets: Residency = { residentBlocks: 0, bufferSets: 2 };
const size = { latentHeight: 2, latentWidth: 4 };
const cache: StepCache = {
  kind: 'magcache',
  settings: { ratios: [1, 1], threshold: 9, mostSkips: 2, computedShare: 0.2 },
};

/**
 * Registers the tests.
 *
 * @param goldens of the tiny model, whose files are in `model`
 */
export function waitsTests(
  name: string,
  open: () => Backend,
  { goldens, model }: Readonly<Record<'goldens' | 'model', ModelFolder>>,
): void {
  /** Waits of some work. */
  async function waits(work: () => Promise<unknown>): Promise<number> {
    const before = open().counters().waits;
    await work();
    return open().counters().waits - before;
  }

  async function transformer(residency: Residency = allResident): Promise<Transformer> {
    const { transformer: config } = await readModelConfig(model);
    const checkpoint = await openCheckpoint(model, 'transformer');
    return Transformer.load(open(), checkpoint, config, { precision: 'int8' }, residency);
  }

  /** Waits of each step. */
  async function stepWaits(residency: Residency, more: Partial<TokenDenoising>, guidance = 5) {
    const loaded = await transformer(residency);
    const counts: number[] = [];
    let last = open().counters().waits;
    const afterStep = () => {
      const now = open().counters().waits;
      counts.push(now - last);
      last = now;
      return false;
    };
    const request = tokenRequest(loaded.config, 4, guidance, { ...more, afterStep });
    await denoiseTokens(open(), loaded, request);
    loaded.dispose();
    return counts;
  }

  test(`${name}: the self-test waits once, loading never`, async () => {
    expect(await waits(() => selfTest(open()))).toBe(1);
    expect(await waits(async () => (await transformer()).dispose())).toBe(0);
  });

  test(`${name}: the text encoder waits once for all prompts`, async () => {
    const { text_encoder: config } = await readModelConfig(model);
    const checkpoint = await openCheckpoint(model, 'text_encoder');
    const prompts = [
      [5, 6, 7],
      [8, 9],
    ];
    const reading = { precision: 'int8' } as const;
    const encode = () => encodePrompts(open(), checkpoint, config, prompts, reading);
    expect(await waits(encode)).toBe(1);
  });

  test(`${name}: a step waits once, with resident and with streamed blocks`, async () => {
    for (const residency of [allResident, twoSets]) {
      expect(await stepWaits(residency, {})).toEqual([1, 1, 1, 1]);
    }
    expect(await stepWaits(twoSets, {}, 1)).toEqual([1, 1, 1, 1]);
  });

  test(`${name}: a step waits once with a cache, and twice where its state is saved`, async () => {
    expect(await stepWaits(allResident, { cache })).toEqual([1, 1, 1, 1]);
    expect(await stepWaits(allResident, { saves: true })).toEqual([2, 2, 2, 2]);
  });

  test(`${name}: one wait for the first frame, and one for each group of frames`, async () => {
    const { vae: config } = await readModelConfig(model);
    const vae = await openCheckpoint(model, 'vae');
    const image = { data: values(0, 3 * 32 * 64), height: 32, width: 64 };
    expect(await waits(() => encodeFirstFrame(open(), config, vae, image, {}))).toBe(1);
    const tiny = await openSafetensors(await goldens.open('formats/tiny-decoder-base.safetensors'));
    const latents = [1, 2, 3].map((stream) => values(stream, config.z_dim * 2 * 4));
    for (const decoder of [
      await createVaeDecoder(open(), config, vae, size),
      await createTinyDecoder(open(), tiny, size),
    ]) {
      let frames = 0;
      const decode = async () => {
        for await (const _ of decoder.decodeClip(latents)) frames += 1;
      };
      expect(await waits(decode)).toBe(3);
      expect(frames).toBe(9);
      decoder.dispose();
    }
  });
}
