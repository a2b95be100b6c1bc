import { describe, expect, test } from 'vitest';
import { testManifest } from '../contract/testing/manifest';
import { resolveSampling } from './profiles';

const manifest = (ultraFast: object) => testManifest({ profiles: { 'ultra-fast': ultraFast } });
const asked = { num_inference_steps: 30, guidance_scale: 5, flow_shift: 4 };

describe('request, profile, run', () => {
  test('what a profile leaves open the request decides', () => {
    expect(resolveSampling(manifest({}), 'ultra-fast', asked)).toEqual({
      scheduler: { kind: 'unipc' },
      steps: 30,
      guidanceScale: 5,
      flowShift: 4,
      decoder: 'full',
    });
  });

  test('what it sets counts, and a list of timesteps sets the steps', () => {
    const scheduler = { kind: 'few-step', timesteps: [1000, 757, 522] };
    const fast = manifest({ scheduler, guidance: 1, steps: 8 });
    expect(resolveSampling(fast, 'ultra-fast', asked)).toEqual({
      scheduler,
      steps: 3,
      guidanceScale: 1,
      flowShift: 4,
      decoder: 'full',
    });
    expect(resolveSampling(fast, 'standard', asked).steps).toBe(30);
    expect(resolveSampling(manifest({ steps: 8 }), 'ultra-fast', asked).steps).toBe(8);
  });

  test('what no run can do yet is refused, not left out', () => {
    const adapters = [{ repository: 'a/b', path: 'c.safetensors' }];
    const fast = manifest({ adapters });
    expect(() => resolveSampling(fast, 'ultra-fast', asked)).toThrow(
      expect.objectContaining({
        code: 'MODEL_MANIFEST_INVALID',
        message:
          'The variant ultra-fast of "Model M" needs adapters of its own, which this version cannot use.',
      }),
    );
    expect(resolveSampling(fast, 'standard', asked).steps).toBe(30);
  });
});
