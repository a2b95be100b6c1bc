import { expect, test } from 'vitest';
import { emptyForm } from './form-state';
import { changePresets, type Preset, presetValues, storedPresets } from './presets';

const chosen = { flow_shift: '3', negative_prompt: 'rain', last_image_at: '2' };
const values = presetValues({ ...emptyForm.values, ...chosen });
const saved = (name: string, id = name): Preset => ({ id, name, values });

test('presets are saved, replaced by name, renamed and deleted', () => {
  // The second of an end image stays with the image.
  expect(values).not.toHaveProperty('last_image_at');
  let presets: readonly Preset[] = [];
  presets = changePresets(presets, { type: 'saved', ...saved(' Rainy ', '1') });
  presets = changePresets(presets, { type: 'saved', ...saved('Fast', '2') });
  const other = { ...values, flow_shift: '7' };
  presets = changePresets(presets, { type: 'saved', id: '3', name: 'Rainy', values: other });
  expect(presets).toEqual([{ id: '1', name: 'Rainy', values: other }, saved('Fast', '2')]);

  presets = changePresets(presets, { type: 'renamed', id: '2', name: 'Rainy' });
  presets = changePresets(presets, { type: 'saved', ...saved(' ', '4') });
  presets = changePresets(presets, { type: 'renamed', id: '2', name: ' ' });
  expect(presets.map(({ name }) => name)).toEqual(['Rainy', 'Fast']);
  presets = changePresets(presets, { type: 'renamed', id: '2', name: 'Quick' });
  presets = changePresets(presets, { type: 'deleted', id: '1' });
  expect(presets).toEqual([saved('Quick', '2')]);
  // A preset of an earlier version has the defaults of what came later.
  const { smooth: _, ...earlier } = { ...values };
  expect(storedPresets([{ id: '2', name: 'Quick', values: earlier }])).toEqual(presets);
  expect(storedPresets(undefined)).toEqual([]);
});
