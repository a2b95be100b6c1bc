import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { parseManifest } from '../../../contract';
import { elementCount } from '../../../gpu';
import { diskFolder, publicModels } from '../../../weights/testing/files';
import { publishedTinyDecoder } from '../../wan/tiny-decoder/published';
import { tinyGraphs } from '../../wan/tiny-decoder/weights';
import { decodeCost, decoderGraphs } from '../../wan/vae';
import { readModelConfig } from '../config';
import { profileWork } from './work';

const config = await readModelConfig(diskFolder(`${publicModels}wan2.2-ti2v-5b`));
const text = await readFile(`${publicModels}wan2.2-ti2v-5b.json`, 'utf8');
const manifest = parseManifest(JSON.parse(text));
const size = { frames: 31, height: 44, width: 80 };
const parameters = { num_inference_steps: 30, guidance_scale: 5, flow_shift: 5 };
const installed = (index: number, rank: number) => {
  const { repository, path } = manifest.profiles['ultra-fast'].adapters[index] ?? {};
  return { source: `${repository}/${path}@main`, misfit: null, rank };
};
const request = { config, manifest, size, parameters, adapter: null };
const standard = profileWork('standard', request);
const share = ({ sampling, decode }: typeof standard) =>
  (sampling + decode) / (standard.sampling + standard.decode);

test('the decoders take what was published, less the taps that the engine saves', () => {
  const tiny = publishedTinyDecoder(config);
  const parameterCount = [...tiny.values()].reduce((sum, shape) => sum + elementCount(shape), 0);
  expect(parameterCount).toBe(9_923_532);
  // 9.8 and 2,011 TFLOP with 36 taps where the engine has 16.
  const frame = { latentHeight: size.height, latentWidth: size.width };
  const small = decodeCost(tinyGraphs(tiny, frame), size.frames).flops / 1e12;
  const full = decodeCost(decoderGraphs(config.vae, frame), size.frames).flops / 1e12;
  expect(small).toBeGreaterThan(7);
  expect(small).toBeLessThan(9.8);
  expect(full).toBeGreaterThan(1600);
  expect(full).toBeLessThan(2011);
});

test('30 steps with guidance are 31 PFLOP; ultra-fast with FastWan takes at most 6 % of standard', () => {
  expect(standard.passes).toBe(60);
  expect(standard.sampling / 1e15).toBeCloseTo(31, 0);
  const fast = profileWork('ultra-fast', { ...request, adapter: installed(0, 128) });
  expect(fast.resolved.applied.adapter?.name).toBe('FastWan');
  expect(fast.passes).toBe(3);
  expect(share(fast)).toBeLessThan(0.06);
  expect(share(fast)).toBeGreaterThan(0.04);
  const turbo = profileWork('ultra-fast', { ...request, adapter: installed(1, 64) });
  expect(turbo.passes).toBe(4);
  expect(share(turbo)).toBeLessThan(0.08);
});

test('without an adapter it is 17 passes, and standard with MagCache 34', () => {
  const fallback = profileWork('ultra-fast', request);
  // Steps 4, 5, 7, 8, 10, 11, 13, 14, 16 of 20 are skipped, and guidance ends after step 12.
  expect(fallback.passes).toBe(11 + 6);
  expect(share(fallback)).toBeLessThan(0.3);
  expect(profileWork('standard', { ...request, cache: true }).passes).toBe(2 * (30 - 13));
});
