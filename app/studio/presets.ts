import { z } from 'zod';
import { profileNames } from '../../lib/contract/profile';
import { sizes } from '../../lib/contract/request';
import type { FormValues } from './form-state';

/** What of the form a preset of one's own holds: everything but image, prompt, seed, model and adapters. */
const presetValuesSchema = z.object({
  profile: z.enum(profileNames),
  fullDecode: z.boolean(),
  cache: z.boolean(),
  size: z.enum(sizes),
  num_inference_steps: z.string(),
  duration: z.string(),
  guidance_scale: z.string(),
  flow_shift: z.string(),
  negative_prompt: z.string(),
});
export type PresetValues = z.output<typeof presetValuesSchema>;

const presetSchema = z.object({
  id: z.string(),
  name: z.string().min(1),
  values: presetValuesSchema,
});
/** A preset of one's own. */
export type Preset = z.output<typeof presetSchema>;
export const presetsSchema = z.array(presetSchema);

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

/** Whether a preset may be saved under a name: not under that of a preset that comes with Kinora. */
export function isPresetName(name: string): boolean {
  return name.trim() !== '' && !builtInPresets.some((preset) => preset.name === name.trim());
}

/** Pure reducer of the list. A name that is not allowed, or another preset's, renames nothing. */
export function changePresets(presets: readonly Preset[], action: PresetAction): readonly Preset[] {
  if (action.type === 'deleted') return presets.filter(({ id }) => id !== action.id);
  const name = action.name.trim().slice(0, maxPresetName);
  if (!isPresetName(name)) return presets;
  const same = presets.find((preset) => preset.name === name);
  if (action.type === 'renamed') {
    if (same) return presets;
    return presets.map((preset) => (preset.id === action.id ? { ...preset, name } : preset));
  }
  const { id, values } = action;
  if (!same) return [...presets, { id, name, values }];
  return presets.map((preset) => (preset === same ? { ...preset, values } : preset));
}

/** What a preset of one's own would hold now. */
export function presetValues(values: FormValues): PresetValues {
  return presetValuesSchema.parse(values);
}

/** A preset that comes with Kinora. It leaves size, length and negative prompt as they are. */
export interface BuiltInPreset {
  readonly name: string;
  readonly hint: string;
  readonly values: Omit<PresetValues, 'size' | 'duration' | 'negative_prompt'>;
}

const usual = { fullDecode: false, cache: false, guidance_scale: '5', flow_shift: '5' } as const;

export const builtInPresets: readonly BuiltInPreset[] = [
  {
    name: 'Draft',
    hint: 'The fastest: to try a prompt or a seed.',
    values: { ...usual, profile: 'ultra-fast', num_inference_steps: '10' },
  },
  {
    name: 'Standard',
    hint: '30 steps: the usual quality.',
    values: { ...usual, profile: 'standard', num_inference_steps: '30' },
  },
  {
    name: 'Best',
    hint: '40 steps and no shortcut: the slowest, with the finest detail.',
    values: { ...usual, profile: 'standard', num_inference_steps: '40', fullDecode: true },
  },
];

/** Whether the form has all values of a preset. */
export function hasPreset(values: FormValues, preset: Partial<PresetValues>): boolean {
  return Object.entries(preset).every(
    ([name, value]) => values[name as keyof PresetValues] === value,
  );
}
