import { expect, test } from 'vitest';
import { type AdapterPart, parseManifest } from '../../../lib/contract';
import { entry } from '../../models/testing/entries';
import { emptyForm, type FormValues } from './form-state';
import { profileText } from './profile-text';
import { chosenSampling, mayGiveNoise, samplingOf, unusedNote } from './sampling';

const few = {
  name: 'Turbo',
  repository: 'owner/name',
  path: 'turbo.safetensors',
  licence: { name: 'CC BY-NC-SA 4.0', commercial: false },
  scheduler: { kind: 'euler', timesteps: [1000, 750] },
};
const base = entry();
const manifest = parseManifest({
  ...base.manifest,
  magcache: { ratios: [0.99, 0.99] },
  profiles: {
    standard: { guidanceAdapter: { ...few, name: 'Guidance', path: 'guidance.safetensors' } },
    'ultra-fast': { mostSteps: 20, cache: true, decoder: 'tiny', adapters: [few] },
  },
});
const part = (component: AdapterPart | 'tiny_decoder', name: string) => ({
  component,
  sourceType: 'F16',
  precision: 'f32' as const,
  worst: null,
  bytesStored: 1,
  sources: [{ name, bytes: 1, sha256: null }],
  completedAt: '',
  verifiedAt: '',
});
const model = (...stored: ReturnType<typeof part>[]) => ({
  ...base,
  manifest,
  ready: true,
  stored,
});
const values = (changes: Partial<FormValues> = {}): FormValues => ({
  ...emptyForm.values,
  profile: 'ultra-fast',
  ...changes,
});
const installed = model(
  part('adapter', 'owner/name/turbo.safetensors@main'),
  part('tiny_decoder', 'x'),
);

const guided = model(part('guidance_adapter', 'owner/name/guidance.safetensors@main'));

test('what is stored decides what ultra-fast is, and the form says so before the run', () => {
  const resolved = samplingOf(installed, values());
  expect(resolved?.sentence).toMatch(
    /^Ultra-fast: 2 steps with Turbo, no guidance, tiny decoder\..* may not be used commercially/,
  );
  expect(unusedNote('num_inference_steps', resolved)).toEqual({
    sentence: 'With Turbo, draft always takes 2 steps.',
    shown: '2',
  });
  expect(unusedNote('guidance_scale', resolved)?.shown).toBe('1');
  expect(unusedNote('flow_shift', resolved)?.shown).toBe('–');

  const without = samplingOf(model(), values());
  expect(without?.sentence).toMatch(/^Ultra-fast \(no few-step adapter is installed\): 20 steps/);
  expect(without?.applied.decoder).toBe('full');
  // Fewer steps can still be set.
  expect(unusedNote('num_inference_steps', without)?.shown).toBeNull();
  expect(unusedNote('guidance_scale', without)).toBeNull();

  expect(samplingOf({ ...installed, ready: false }, values())).toBeNull();
  expect(samplingOf(installed, values({ profile: 'standard' }))?.sentence).toBeNull();
});

test.each([
  ['6', '3', true],
  ['5.5', '4.5', true],
  ['5', '3', false],
  ['6', '5', false],
])('guidance %s with shift %s may give noise with the 5B: %s', (guidance, shift, expected) => {
  const asked = values({ profile: 'standard', guidance_scale: guidance, flow_shift: shift });
  const large = model();
  expect(mayGiveNoise(large, samplingOf(large, asked))).toBe(expected);
  const bundled = { ...large, origin: 'bundled' as const };
  expect(mayGiveNoise(bundled, samplingOf(bundled, asked))).toBe(false);
  const of14b = { ...large, manifest: { ...manifest, family: 'wan14b' } };
  expect(mayGiveNoise(of14b, samplingOf(of14b, asked))).toBe(false);
  // Without guidance, and where the profile names the noise levels, neither number is used.
  const draft = { ...asked, profile: 'ultra-fast' as const };
  expect(mayGiveNoise(installed, samplingOf(installed, draft))).toBe(false);
});

test('a number that is being typed does not keep the form from saying what runs', () => {
  const typing = samplingOf(installed, values({ num_inference_steps: '' }));
  expect(typing?.applied.steps).toBe(2);
});

test('a switch goes with the request where its profile has a use for it', () => {
  const both = { decoder: 'full' as const, cache: true };
  expect(chosenSampling(installed, values(both))).toEqual({ decoder: 'full' });
  expect(chosenSampling(installed, values({ ...both, profile: 'standard' }))).toEqual({
    cache: true,
  });
  const plain = { ...installed, manifest: { ...manifest, magcache: undefined } };
  expect(chosenSampling(plain, values({ ...both, profile: 'standard' }))).toEqual({});
  expect(samplingOf(installed, values(both))?.applied.decoder).toBe('full');
  // A guidance adapter that is not stored, and a strength without an adapter, stay in the form.
  const weak = { guidanceAdapter: true, adapterStrength: 0.8 };
  expect(chosenSampling(installed, values(weak))).toEqual({ adapterStrength: 0.8 });
  const standard = values({ ...weak, profile: 'standard' });
  expect(chosenSampling(installed, standard)).toEqual({});
  expect(chosenSampling(guided, standard)).toEqual(weak);
  expect(unusedNote('guidance_scale', samplingOf(guided, standard))).toEqual({
    sentence: 'Guidance takes the place of guidance.',
    shown: '–',
  });
});

test('the line on what runs is that of the engine, which the command line shows too', () => {
  const other = model(part('adapter', 'other.safetensors'));
  const bundled = { ...installed, origin: 'bundled' as const };
  for (const one of [installed, model(), other, bundled, guided]) {
    for (const changes of [
      { num_inference_steps: '1' },
      { decoder: 'full' as const, guidance_scale: '1' },
      { profile: 'standard' as const },
      { profile: 'standard' as const, cache: true },
      { profile: 'standard' as const, guidanceAdapter: true, adapterStrength: 0.8 },
    ]) {
      const resolved = samplingOf(one, values(changes));
      if (!resolved) throw new Error('no sampling');
      const { profile } = values(changes);
      // The page calls the profile as its control does.
      const sentence = resolved.sentence?.replace(/^Ultra-fast/, 'Draft') ?? null;
      expect(profileText(one, profile, resolved)).toBe(sentence);
    }
  }
});
