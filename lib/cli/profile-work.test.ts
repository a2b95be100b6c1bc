import { expect, test } from 'vitest';
import { at } from '../contract';
import { modelFamilies } from '../models';
import { realFolder } from '../models/wan/testing/model';
import { longestClip } from '../pipeline/memory/memory-plan';
import { readManifest } from './inputs';
import { countProfiles, type ProfileWork, workTable } from './profile-work';

const manifest = await readManifest('wan2.2-ti2v-5b');
const counts = await modelFamilies.wan22.count(manifest.precision, realFolder);
const profiles = countProfiles(manifest, counts, longestClip(manifest, '1280*720'));
const found = (name: string): ProfileWork => {
  const work = profiles.find((each) => each.name === name);
  if (!work) throw new Error(`${name} is not counted`);
  return work;
};
const standard = found('standard');
const share = ({ sampling, decode }: ProfileWork) =>
  (sampling + decode) / (standard.sampling + standard.decode);
/** What a pass costs whose blocks are reused. */
const reused = 0.03;

test('30 steps with guidance are 31 PFLOP; ultra-fast takes at most 7 % of standard', () => {
  expect(standard.passes).toBe(60);
  expect(standard.sampling / 1e15).toBeCloseTo(31, 0);
  const fast = [found('ultra-fast, FastWan'), found('ultra-fast, LongLive-Plug')];
  expect(fast.map(({ passes }) => passes)).toEqual([3, 4]);
  for (const work of fast) {
    expect(share(work)).toBeLessThan(0.07);
    expect(share(work)).toBeGreaterThan(0.04);
  }
});

test('with the guidance adapter, sampling takes half, and with a cache all at most 35 %', () => {
  const half = found('standard, guidance adapter');
  expect(half.passes).toBe(30);
  expect(half.sampling / standard.sampling).toBe(0.5);
  // The decode is the same.
  expect(share(half)).toBeLessThan(0.54);
  const cached = found('… cached');
  expect(cached.passes).toBeCloseTo(30 - 13 + 13 * reused, 5);
  expect(share(cached)).toBeLessThan(0.35);
});

test('the light decoder takes a quarter of the work of the full one', () => {
  const { decode } = found('… light decoder');
  expect(decode / standard.decode).toBeCloseTo(0.25, 2);
  expect(decode).toBeGreaterThan(10 * found('ultra-fast, FastWan').decode);
});

test('without an adapter it is 17 passes, and standard with MagCache 34', () => {
  const fallback = found('ultra-fast, no adapter');
  // Steps 4, 5, 7, 8, 10, 11, 13, 14, 16 of 20 are skipped, and guidance ends after step 12.
  expect(fallback.passes).toBeGreaterThan(11 + 6);
  expect(fallback.passes).toBeLessThan(11 + 6 + 32 * reused);
  expect(share(fallback)).toBeLessThan(0.3);
  expect(found('standard, cached').passes).toBeCloseTo(2 * (30 - 13 + 13 * reused), 5);
});

test('a model without ratios for MagCache has no line with a cache', () => {
  const names = (of: typeof manifest) =>
    countProfiles(of, counts, longestClip(of, '1280*720')).map(({ name }) => name);
  const cached = /cached$/;
  expect(names({ ...manifest, magcache: undefined }).filter((name) => cached.test(name))).toEqual(
    [],
  );
  expect(names(manifest).filter((name) => cached.test(name))).toHaveLength(2);
});

test('a decode takes what is counted of the decoders, less the taps that the engine saves', () => {
  // 9.8 and 2,011 TFLOP with 36 taps where the engine has 16.
  const small = at(profiles, profiles.length - 1).decode / 1e12;
  expect(small).toBeGreaterThan(7);
  expect(small).toBeLessThan(9.8);
  expect(standard.decode / 1e12).toBeGreaterThan(1600);
  expect(standard.decode / 1e12).toBeLessThan(2011);
});

test('the table has a line for each, as a share of standard', () => {
  const lines = workTable(profiles).trimEnd().split('\n');
  expect(lines).toHaveLength(1 + profiles.length);
  expect(lines[1]).toMatch(/^standard +60\.0 +31\.\d+ PFLOP +1\.\d+ PFLOP +100\.0 %$/);
});
