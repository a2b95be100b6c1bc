import { describe, expect, test } from 'vitest';
import { profileSchema, profilesSchema } from './profile';
import { profilesDiffer } from './profile-names';
import { profileOfModel } from './v3/prediction';

describe('profiles', () => {
  test('what a manifest leaves out is the way of the standard', () => {
    const profiles = profilesSchema.parse({});
    expect(profiles.standard).toEqual({
      scheduler: { kind: 'unipc' },
      adapters: [],
      decoder: 'full',
      guidedShare: 1,
      cache: false,
    });
    expect(profilesDiffer(profiles)).toBe(false);
  });

  test('are a choice where they differ', () => {
    const scheduler = { kind: 'few-step', timesteps: [1000, 757, 522] };
    const profiles = profilesSchema.parse({ 'ultra-fast': { scheduler, guidance: 1 } });
    expect(profilesDiffer(profiles)).toBe(true);
    expect(profiles['ultra-fast'].scheduler).toEqual(scheduler);
  });

  test.each([
    ['timesteps that do not fall', { kind: 'few-step', timesteps: [500, 500] }],
    ['timesteps outside of training', { kind: 'euler', timesteps: [1001] }],
    ['a name that is none', { kind: 'DDIM sampler' }],
  ])('%s are refused', (_, scheduler) => {
    expect(profileSchema.safeParse({ scheduler }).success).toBe(false);
  });

  test('each model of the API names one', () => {
    expect(profileOfModel('kinora/wan-2.2/i2v-720p-lora')).toBe('standard');
    expect(profileOfModel('kinora/wan-2.2/i2v-720p-lora-ultra-fast')).toBe('ultra-fast');
    expect(() => profileOfModel('kinora/wan-2.2/t2v')).toThrow('no model');
  });
});
