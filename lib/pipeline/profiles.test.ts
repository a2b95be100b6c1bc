import { describe, expect, test } from 'vitest';
import { KinoraError, type ProfileName } from '../contract';
import { testManifest } from '../contract/testing/manifest';
import type { ModelAdapter } from './model';
import { resolveSampling } from './profiles';

const fewStep = {
  name: 'FastWan',
  repository: 'owner/name',
  path: 'few/fast.safetensors',
  licence: { name: 'Apache-2.0' },
  scheduler: { kind: 'few-step', timesteps: [1000, 757, 522] },
};
const turbo = {
  name: 'Turbo',
  repository: 'owner/name',
  path: 'few/turbo.safetensors',
  scale: 0.9,
  licence: { name: 'CC BY-NC-SA 4.0', commercial: false },
  scheduler: { kind: 'euler', timesteps: [1000, 937.5, 833.3, 625] },
};
const guidance = { repository: 'owner/name', path: 'few/guidance.safetensors', scale: 0.5 };
const plug = {
  name: 'LongLive-Plug',
  repository: 'owner/name',
  path: 'few/plug.safetensors',
  guidanceAdapter: guidance,
  licence: { name: 'Apache-2.0' },
  scheduler: { kind: 'unipc', timesteps: [999.8, 937.265, 833.055, 624.687] },
};
const standard = {
  guidanceAdapter: { ...guidance, name: 'Guidance', licence: { name: 'Apache-2.0' } },
};
const ultraFast = {
  mostSteps: 20,
  guidedShare: 0.6,
  cache: true,
  decoder: 'tiny',
  adapters: [fewStep, plug, turbo],
};
const magcache = { ratios: [0.99, 0.99] };
const installed = (file: string): ModelAdapter => ({
  source: `owner/name/few/${file}.safetensors@0c26ec2`,
  misfit: null,
});

interface Opened {
  readonly fields?: object;
  readonly adapter?: ModelAdapter | null;
  readonly guidance?: ModelAdapter;
  readonly decoders?: readonly ('full' | 'tiny')[];
}
const opened = (given: Opened = {}) => ({
  manifest: testManifest({
    magcache,
    profiles: { standard, 'ultra-fast': ultraFast },
    ...given.fields,
  }),
  adapters: {
    ...(given.adapter && { adapter: given.adapter }),
    ...(given.guidance && { guidance_adapter: given.guidance }),
  },
  decoders: given.decoders ?? (['full', 'tiny'] as const),
});
const asked = { num_inference_steps: 30, guidance_scale: 5, flow_shift: 4 };

test('standard is what the request says, with nothing to say about it', () => {
  expect(resolveSampling(opened(), 'standard', asked)).toEqual({
    sampling: {
      scheduler: { kind: 'unipc' },
      steps: 30,
      guidanceScale: 5,
      guidedSteps: 30,
      flowShift: 4,
      decoder: 'full',
      cache: { kind: 'none' },
    },
    adapterScales: {},
    adapters: [],
    applied: {
      steps: 30,
      guidance_scale: 5,
      guided_steps: 30,
      scheduler: 'unipc',
      flow_shift: 4,
      adapter: null,
      decoder: 'full',
      cache: 'none',
      unused: [],
    },
    sentence: null,
  });
  const cached = resolveSampling(opened(), 'standard', asked, { cache: true });
  expect(cached.sampling.cache).toMatchObject({ kind: 'magcache', settings: { threshold: 0.06 } });
  expect(cached.sentence).toBe('Standard: 30 steps, guidance 5, MagCache, full decoder.');
});

describe('ultra-fast with an adapter', () => {
  test('is sampled as the adapter wants, and says what it leaves of the request', () => {
    const model = opened({ adapter: installed('fast') });
    const { sampling, adapterScales, applied, sentence } = resolveSampling(
      model,
      'ultra-fast',
      asked,
    );
    expect(sampling).toMatchObject({ scheduler: fewStep.scheduler, steps: 3, guidanceScale: 1 });
    expect([sampling.cache, sampling.decoder]).toEqual([{ kind: 'none' }, 'tiny']);
    expect(adapterScales).toEqual({ adapter: 1 });
    expect(applied).toMatchObject({
      steps: 3,
      guided_steps: 0,
      flow_shift: null,
      timesteps: [1000, 757, 522],
      adapter: { name: 'FastWan', licence: { name: 'Apache-2.0', commercial: true } },
      unused: ['num_inference_steps', 'guidance_scale', 'flow_shift'],
    });
    expect(sentence).toBe(
      'Ultra-fast: 3 steps with FastWan, no guidance, tiny decoder. Not used from the request: steps, guidance and flow shift.',
    );
  });

  test('the installed file decides which one, and a licence that forbids commercial use is said', () => {
    const local = { source: 'turbo.safetensors', misfit: null };
    for (const adapter of [installed('turbo'), local]) {
      const { adapterScales, applied, sentence } = resolveSampling(
        opened({ adapter }),
        'ultra-fast',
        asked,
      );
      expect(adapterScales).toEqual({ adapter: 0.9 });
      expect([applied.scheduler, applied.steps]).toEqual(['euler', 4]);
      expect(sentence).toMatch(/Turbo may not be used commercially \(CC BY-NC-SA 4\.0\)\.$/);
    }
    const bundled = opened({ adapter: { source: null, misfit: null } });
    const { applied } = resolveSampling(bundled, 'ultra-fast', asked);
    expect(applied.adapter?.name).toBe('FastWan');
  });
});

test('two adapters run at once, each with its scale, and the strength is a factor of both', () => {
  const both = opened({ adapter: installed('plug'), guidance: installed('guidance') });
  const plain = resolveSampling(both, 'ultra-fast', asked);
  expect(plain.adapterScales).toEqual({ adapter: 1, guidance_adapter: 0.5 });
  expect(plain.applied).toMatchObject({ steps: 4, guidance_scale: 1, scheduler: 'unipc' });
  const weak = resolveSampling(both, 'ultra-fast', asked, { adapterStrength: 0.8 });
  expect(weak.adapterScales).toEqual({ adapter: 0.8, guidance_adapter: 0.4 });
  expect(weak.applied.adapter).toMatchObject({ name: 'LongLive-Plug', strength: 0.8 });
  expect(weak.sentence).toMatch(/^Ultra-fast: 4 steps with LongLive-Plug at 0\.8, no guidance/);
  for (const [model, adapterStrength] of [
    [both, 0.4],
    [both, 1.3],
    [opened(), 0.8],
  ] as const) {
    expect(() => resolveSampling(model, 'ultra-fast', asked, { adapterStrength })).toThrow(
      expect.objectContaining({ code: 'PARAMETER_INVALID' }),
    );
  }
});

test('a guidance adapter takes the place of guidance where it is asked for, beside a cache', () => {
  const model = opened({ guidance: installed('guidance') });
  expect(resolveSampling(model, 'standard', asked).adapterScales).toEqual({});
  const options = { guidanceAdapter: true, cache: true };
  const { sampling, adapterScales, applied, sentence } = resolveSampling(
    model,
    'standard',
    asked,
    options,
  );
  expect(sampling).toMatchObject({ steps: 30, guidanceScale: 1, cache: { kind: 'magcache' } });
  expect(adapterScales).toEqual({ guidance_adapter: 0.5 });
  expect(applied).toMatchObject({ adapter: { name: 'Guidance' }, unused: ['guidance_scale'] });
  expect(sentence).toBe(
    'Standard: 30 steps with Guidance, no guidance, MagCache, full decoder. Not used from the request: guidance.',
  );
  for (const [lacking, name] of [
    [opened(), 'standard'],
    [model, 'ultra-fast'],
  ] as const) {
    expect(() => resolveSampling(lacking, name, asked, options)).toThrow(
      expect.objectContaining({ code: 'MODEL_FILE_MISSING' }),
    );
  }
});

describe('ultra-fast without an adapter', () => {
  const misfit = new KinoraError('LORA_WRONG_BASE');
  test.each([
    [null, 'no few-step adapter is installed'],
    [{ source: 'x', misfit }, 'its adapter does not fit Model M'],
    [installed('other'), 'the installed adapter is not one of the profile'],
    [installed('plug'), 'the guidance adapter that belongs to its adapter is not installed'],
  ])('takes at most 20 steps with a cache, and says why (%#)', (adapter, reason) => {
    const { sampling, applied, sentence } = resolveSampling(
      opened({ adapter }),
      'ultra-fast',
      asked,
    );
    expect(sampling).toMatchObject({ steps: 20, guidedSteps: 12, flowShift: 4 });
    expect(applied).toMatchObject({ cache: 'magcache', unused: ['num_inference_steps'] });
    expect(sentence).toBe(
      `Ultra-fast (${reason}): 20 steps, guidance until step 12, MagCache, tiny decoder. Not used from the request: steps.`,
    );
  });

  test('fewer steps stay, no step is reused without ratios, and the full decoder serves without a tiny one', () => {
    const model = opened({ fields: { magcache: undefined }, decoders: ['full'] });
    const few = { ...asked, num_inference_steps: 8, guidance_scale: 1 };
    const { sampling, applied } = resolveSampling(model, 'ultra-fast', few);
    expect(sampling).toMatchObject({ steps: 8, cache: { kind: 'none' }, decoder: 'full' });
    expect(applied).toMatchObject({ guided_steps: 0, unused: [] });
  });
});

test('a cache that is asked for without ratios computes every step, and the line says so', () => {
  const model = opened({ fields: { magcache: undefined } });
  const { applied, sentence } = resolveSampling(model, 'standard', asked, { cache: true });
  expect(applied.cache).toBe('none');
  expect(sentence).toMatch(
    /^Standard \(the model has no ratios for MagCache, so that every step is computed\): 30 steps, /,
  );
});

test('a profile that the manifest does not have is an error that names those it has', () => {
  const name = 'turbo' as ProfileName;
  expect(() => resolveSampling(opened(), name, asked)).toThrow(
    expect.objectContaining({
      code: 'PARAMETER_INVALID',
      message: 'Model M has no profile "turbo"; it has standard and ultra-fast.',
    }),
  );
});

test('the decoder can be chosen; one that the model lacks is an error', () => {
  const choices = { decoder: 'full' } as const;
  expect(resolveSampling(opened(), 'ultra-fast', asked, choices).applied.decoder).toBe('full');
  const plain = opened({ decoders: ['full'] });
  expect(() => resolveSampling(plain, 'standard', asked, { decoder: 'tiny' })).toThrow(
    expect.objectContaining({ code: 'MODEL_FILE_MISSING' }),
  );
});
