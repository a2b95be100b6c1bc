import { expect, test } from 'vitest';
import { parseParameters, profilesSchema } from '../../../lib/contract';
import { changeForm, emptyForm, modelDefaults, toParameters } from './form-state';
import { hasValues, qualities, qualityValues } from './quality';

const model = (profiles: object, steps = 30) => ({
  defaults: { num_inference_steps: steps },
  profiles: profilesSchema.parse(profiles),
});
const own = model({ 'ultra-fast': { mostSteps: 5 } }, 4);
const plain = model({});

test('each level is the only one that the form has after it was chosen, and is a valid request', () => {
  for (const one of [own, plain, undefined]) {
    const levels = qualityValues(one);
    for (const name of qualities) {
      const values = { prompt: 'a boat', ...levels[name] };
      const form = changeForm(emptyForm, { type: 'changed', values });
      expect(qualities.filter((level) => hasValues(form.values, levels[level]))).toEqual([name]);
      expect(() => parseParameters(toParameters(form))).not.toThrow();
    }
  }
});

test('steps follow the defaults of the model; a draft takes the fast profile where there is one', () => {
  const steps = (one: typeof own) =>
    qualities.map((name) => qualityValues(one)[name].num_inference_steps);
  expect(steps(own)).toEqual([undefined, '4', '8']);
  expect(steps(plain)).toEqual(['10', '30', '40']);
  expect(qualityValues(undefined, modelDefaults(own)).best.num_inference_steps).toBe('8');
  expect(qualityValues(own).draft.profile).toBe('ultra-fast');
  expect(qualityValues(plain).draft.profile).toBe('standard');
});

test('a new form is at the usual level, and what was set otherwise is at none', () => {
  const on = (changes: object) =>
    qualities.filter((name) =>
      hasValues({ ...emptyForm.values, ...changes }, qualityValues()[name]),
    );
  expect(on({})).toEqual(['standard']);
  expect(on({ guidance_scale: '3' })).toEqual(['standard']);
  expect(on({ num_inference_steps: '12' })).toEqual([]);
  expect(on({ cache: true })).toEqual([]);
  expect(on({ profile: 'ultra-fast', ...modelDefaults() })).toEqual(['draft']);
});
