import { expect, test } from 'vitest';
import { parseParameters } from '../../../lib/contract/request';
import { changeForm, emptyForm, modelDefaults, toParameters } from './form-state';
import { builtInPresets, changePresets, hasPreset, type Preset, presetValues } from './presets';
import { parsePresets } from './presets-schema';

const values = presetValues({ ...emptyForm.values, flow_shift: '3', negative_prompt: 'rain' });
const saved = (name: string, id = name): Preset => ({ id, name, values });

test('presets are saved, replaced by name, renamed and deleted', () => {
  let presets: readonly Preset[] = [];
  presets = changePresets(presets, { type: 'saved', ...saved(' Rainy ', '1') });
  presets = changePresets(presets, { type: 'saved', ...saved('Fast', '2') });
  const other = { ...values, flow_shift: '7' };
  presets = changePresets(presets, { type: 'saved', id: '3', name: 'Rainy', values: other });
  expect(presets).toEqual([{ id: '1', name: 'Rainy', values: other }, saved('Fast', '2')]);

  presets = changePresets(presets, { type: 'renamed', id: '2', name: 'Rainy' });
  for (const name of [' ', 'Draft ']) {
    presets = changePresets(presets, { type: 'saved', ...saved(name, '4') });
    presets = changePresets(presets, { type: 'renamed', id: '2', name });
  }
  expect(presets.map(({ name }) => name)).toEqual(['Rainy', 'Fast']);
  presets = changePresets(presets, { type: 'renamed', id: '2', name: 'Quick' });
  presets = changePresets(presets, { type: 'deleted', id: '1' });
  expect(presets).toEqual([saved('Quick', '2')]);
  expect(parsePresets(structuredClone(presets))).toEqual(presets);
  expect(parsePresets([{ id: '1' }])).toEqual([]);
});

test('a preset is on when the form has all of its values, whatever the others are', () => {
  const prompt = { ...emptyForm.values, prompt: 'a boat', seed: '7' };
  expect(hasPreset({ ...prompt, ...values }, values)).toBe(true);
  expect(hasPreset({ ...prompt, ...values, flow_shift: '4' }, values)).toBe(false);
  const on = builtInPresets(modelDefaults()).filter((preset) =>
    hasPreset(emptyForm.values, preset.values),
  );
  expect(on.map(({ name }) => name)).toEqual(['form.presets.standard']);
});

test('every preset that comes with Kinora is a valid request', () => {
  const ofModel = modelDefaults({ defaults: { num_inference_steps: 8, guidance_scale: 2 } });
  const presets = [...builtInPresets(modelDefaults()), ...builtInPresets(ofModel)];
  const steps = presets.map(({ values: { num_inference_steps } }) => num_inference_steps);
  expect(steps).toEqual(['10', '30', '40', '5', '8', '11']);
  for (const preset of presets) {
    const form = changeForm(emptyForm, {
      type: 'changed',
      values: { prompt: 'a boat', ...preset.values },
    });
    expect(() => parseParameters(toParameters(form))).not.toThrow();
  }
});
