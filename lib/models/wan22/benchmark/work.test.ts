import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { parseManifest } from '../../../contract';
import { elementCount } from '../../../gpu';
import { diskFolder, publicModels } from '../../../weights/testing/files';
import { publishedTinyDecoder } from '../../wan/tiny-decoder/published';
import { tinyGraphs } from '../../wan/tiny-decoder/weights';
import { decodeCost, decoderGraphs } from '../../wan/vae';
import { readModelConfig } from '../config';
import { profileWork, publishedAdapter } from './work';

const config = await readModelConfig(diskFolder(`${publicModels}wan2.2-ti2v-5b`));
const text = await readFile(`${publicModels}wan2.2-ti2v-5b.json`, 'utf8');
const manifest = parseManifest(JSON.parse(text));
const size = { frames: 31, height: 44, width: 80 };
const parameters = { num_inference_steps: 30, guidance_scale: 5, flow_shift: 5 };
const fewStep = (name: string) => {
  const found = manifest.profiles['ultra-fast'].adapters.find((adapter) => adapter.name === name);
  if (!found) throw new Error(`${name} is no adapter of the manifest`);
  return found;
};
const guidance = publishedAdapter(manifest.profiles.standard.guidanceAdapter ?? fewStep(''));
const request = { config, manifest, size, parameters, adapters: {} };
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

test('30 steps with guidance are 31 PFLOP; ultra-fast takes at most 7 % of standard', () => {
  expect(standard.passes).toBe(60);
  expect(standard.sampling / 1e15).toBeCloseTo(31, 0);
  const fastWan = { adapter: publishedAdapter(fewStep('FastWan')) };
  const fast = profileWork('ultra-fast', { ...request, adapters: fastWan });
  expect(fast.resolved.applied.adapter?.name).toBe('FastWan');
  expect(fast.passes).toBe(3);
  expect(share(fast)).toBeLessThan(0.07);
  expect(share(fast)).toBeGreaterThan(0.04);
  const longLive = {
    adapter: publishedAdapter(fewStep('LongLive-Plug')),
    guidance_adapter: guidance,
  };
  const four = profileWork('ultra-fast', { ...request, adapters: longLive });
  expect(four.passes).toBe(4);
  // Two adapters cost more than one.
  expect(four.sampling / 4).toBeGreaterThan(fast.sampling / 3);
  expect(share(four)).toBeLessThan(0.07);
});

test('with the guidance adapter, sampling takes at most 52 %, and with a cache all at most 35 %', () => {
  const adapters = { guidance_adapter: guidance };
  const half = profileWork('standard', {
    ...request,
    adapters,
    options: { guidanceAdapter: true },
  });
  expect(half.passes).toBe(30);
  expect(half.sampling / standard.sampling).toBeLessThan(0.52);
  // The decode is the same.
  expect(share(half)).toBeLessThan(0.54);
  const options = { guidanceAdapter: true, cache: true };
  const cached = profileWork('standard', { ...request, adapters, options });
  expect(cached.passes).toBe(30 - 13);
  expect(share(cached)).toBeLessThan(0.35);
});

test('without an adapter it is 17 passes, and standard with MagCache 34', () => {
  const fallback = profileWork('ultra-fast', request);
  // Steps 4, 5, 7, 8, 10, 11, 13, 14, 16 of 20 are skipped, and guidance ends after step 12.
  expect(fallback.passes).toBe(11 + 6);
  expect(share(fallback)).toBeLessThan(0.3);
  expect(profileWork('standard', { ...request, options: { cache: true } }).passes).toBe(
    2 * (30 - 13),
  );
});
