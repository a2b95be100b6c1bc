import { samplingSwitchNames, switchNames } from '../../../lib/contract';
import { emptyForm, type FormValues } from './form-state';

/** What of the form a preset of one's own holds: how a video is made, not of what or by what. */
export type PresetValues = Pick<FormValues, (typeof presetNames)[number]>;

/** A preset of one's own. */
export interface Preset {
  readonly id: string;
  readonly name: string;
  readonly values: PresetValues;
}

export type PresetAction =
  /** A preset of this name is replaced. */
  | {
      readonly type: 'saved';
      readonly id: string;
      readonly name: string;
      readonly values: PresetValues;
    }
  | { readonly type: 'renamed'; readonly id: string; readonly name: string }
  | { readonly type: 'deleted'; readonly id: string };

/** Longest name, in characters. */
export const maxPresetName = 40;

/** Pure reducer of the list. An empty name, or another preset's, renames nothing. */
export function changePresets(presets: readonly Preset[], action: PresetAction): readonly Preset[] {
  if (action.type === 'deleted') return presets.filter(({ id }) => id !== action.id);
  const name = action.name.trim().slice(0, maxPresetName);
  if (name === '') return presets;
  const same = presets.find((preset) => preset.name === name);
  if (action.type === 'renamed') {
    if (same) return presets;
    return presets.map((preset) => (preset.id === action.id ? { ...preset, name } : preset));
  }
  const { id, values } = action;
  if (!same) return [...presets, { id, name, values }];
  return presets.map((preset) => (preset === same ? { ...preset, values } : preset));
}

/** What of the form a preset holds. */
const presetNames = [
  'negative_prompt',
  'size',
  'num_inference_steps',
  'duration',
  'guidance_scale',
  'flow_shift',
  'profile',
  'adapterStrength',
  ...switchNames,
  ...samplingSwitchNames,
] as const;

/** What a preset of one's own would hold now. */
export function presetValues(values: FormValues): PresetValues {
  return Object.fromEntries(presetNames.map((name) => [name, values[name]])) as PresetValues;
}

/** The presets that are stored, by an earlier version perhaps, which had fewer fields. */
export function storedPresets(stored: unknown): readonly Preset[] {
  const defaults = presetValues(emptyForm.values);
  return ((stored ?? []) as readonly Preset[]).map(({ values, ...preset }) => {
    return { ...preset, values: { ...defaults, ...values } };
  });
}
