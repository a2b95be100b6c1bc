import { type TextKey, t } from '../../texts';
import '../../texts/en/form';
import { type FormValues, type ModelDefaults, toNumber } from './form-state';

/** What of the form a preset of one's own holds: everything but image, prompt, seed, model and adapters. */
const presetFields = [
  'profile',
  'fullDecode',
  'cache',
  'size',
  'num_inference_steps',
  'duration',
  'guidance_scale',
  'flow_shift',
  'negative_prompt',
] as const;
export type PresetValues = Pick<FormValues, (typeof presetFields)[number]>;

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

/** Whether a preset may be saved under a name: not under that of a preset that comes with Kinora. */
export function isPresetName(name: string): boolean {
  return name.trim() !== '' && !builtInNames.some((builtIn) => t(builtIn) === name.trim());
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
  return Object.fromEntries(presetFields.map((name) => [name, values[name]])) as PresetValues;
}

/** A preset that comes with Kinora. It leaves size, length and negative prompt as they are. */
export interface BuiltInPreset {
  readonly name: TextKey;
  readonly hint: TextKey;
  readonly values: Omit<PresetValues, 'size' | 'duration' | 'negative_prompt'>;
}

const builtInNames = ['form.presets.draft', 'form.presets.standard', 'form.presets.best'] as const;

/** The presets that come with Kinora, by the defaults of the model. */
export function builtInPresets(defaults: ModelDefaults): readonly BuiltInPreset[] {
  const [draft, standard, best] = builtInNames;
  const steps = toNumber(defaults.num_inference_steps);
  const { negative_prompt: _, ...numbers } = defaults;
  const usual = { ...numbers, profile: 'standard', fullDecode: false, cache: false } as const;
  return [
    {
      name: draft,
      hint: 'form.presetHints.draft',
      values: {
        ...usual,
        profile: 'ultra-fast',
        num_inference_steps: String(Math.max(Math.round(steps / 3), 5)),
      },
    },
    { name: standard, hint: 'form.presetHints.standard', values: usual },
    {
      name: best,
      hint: 'form.presetHints.best',
      values: {
        ...usual,
        num_inference_steps: String(Math.min(Math.round((steps * 4) / 3), 40)),
        fullDecode: true,
      },
    },
  ];
}

/** Whether the form has all values of a preset. */
export function hasPreset(values: FormValues, preset: Partial<PresetValues>): boolean {
  return Object.entries(preset).every(
    ([name, value]) => values[name as keyof PresetValues] === value,
  );
}
