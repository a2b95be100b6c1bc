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
const ultraFast = {
  mostSteps: 20,
  guidedShare: 0.6,
  cache: true,
  decoder: 'tiny',
  adapters: [fewStep, turbo],
};
const magcache = { ratios: [0.99, 0.99] };
const installed = (file: string): ModelAdapter => ({
  source: `owner/name/few/${file}.safetensors@0c26ec2`,
  misfit: null,
});

interface Opened {
  readonly fields?: object;
  readonly adapter?: ModelAdapter | null;
  readonly decoders?: readonly ('full' | 'tiny')[];
}
const opened = ({ fields, adapter = null, decoders = ['full', 'tiny'] }: Opened = {}) => ({
  manifest: testManifest({ magcache, profiles: { 'ultra-fast': ultraFast }, ...fields }),
  adapter,
  decoders,
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
    adapterScale: 0,
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
    const { sampling, adapterScale, applied, sentence } = resolveSampling(
      model,
      'ultra-fast',
      asked,
    );
    expect(sampling).toMatchObject({ scheduler: fewStep.scheduler, steps: 3, guidanceScale: 1 });
    expect([sampling.cache, sampling.decoder, adapterScale]).toEqual([{ kind: 'none' }, 'tiny', 1]);
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
      const { adapterScale, applied, sentence } = resolveSampling(
        opened({ adapter }),
        'ultra-fast',
        asked,
      );
      expect([adapterScale, applied.scheduler, applied.steps]).toEqual([0.9, 'euler', 4]);
      expect(sentence).toMatch(/Turbo may not be used commercially \(CC BY-NC-SA 4\.0\)\.$/);
    }
    const bundled = opened({ adapter: { source: null, misfit: null } });
    const { applied } = resolveSampling(bundled, 'ultra-fast', asked);
    expect(applied.adapter?.name).toBe('FastWan');
  });
});

describe('ultra-fast without an adapter', () => {
  const misfit = new KinoraError('LORA_WRONG_BASE');
  test.each([
    [null, 'no few-step adapter is installed'],
    [{ source: 'x', misfit }, 'its adapter does not fit Model M'],
    [installed('other'), 'the installed adapter is not one of the profile'],
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

  test('fewer steps stay, EasyCache serves without ratios and the full decoder without a tiny one', () => {
    const model = opened({ fields: { magcache: undefined }, decoders: ['full'] });
    const few = { ...asked, num_inference_steps: 8, guidance_scale: 1 };
    const { sampling, applied } = resolveSampling(model, 'ultra-fast', few);
    expect(sampling).toMatchObject({ steps: 8, cache: { kind: 'easycache' }, decoder: 'full' });
    expect(applied).toMatchObject({ guided_steps: 0, unused: [] });
  });
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
