import { formatSize, profileTitles } from '../../../lib/contract/format';
import type { Completed } from '../../../lib/contract/prediction';

/** A setting in which two videos differ, as a person reads it. */
export interface SettingDifference {
  readonly name: string;
  readonly first: string;
  readonly second: string;
}

/** Each setting with its value. What a profile made of it counts, not what was asked for. */
const settings: readonly (readonly [name: string, value: (video: Completed) => string])[] = [
  ['Prompt', ({ parameters, result }) => result.promptOptimization?.text ?? parameters.prompt],
  ['Negative prompt', ({ parameters }) => parameters.negative_prompt],
  ['Model', ({ model }) => model],
  ['Speed', ({ profile }) => profileTitles[profile]],
  ['Size', ({ parameters }) => formatSize(parameters.size)],
  ['Duration', ({ parameters }) => `${parameters.duration} s`],
  ['Steps', ({ parameters, result }) => stepsText(parameters.num_inference_steps, result)],
  [
    'Guidance',
    ({ parameters, result }) => String(result.applied?.guidance_scale ?? parameters.guidance_scale),
  ],
  ['Flow shift', ({ parameters, result }) => shiftText(parameters.flow_shift, result)],
  ['Seed', ({ result }) => String(result.seed)],
  [
    'LoRA',
    ({ parameters }) => parameters.loras.map(({ path, scale }) => `${path} × ${scale}`).join(', '),
  ],
  ['Decoder', ({ result }) => (result.applied?.decoder === 'tiny' ? 'Tiny' : 'Full')],
  ['Reused steps', ({ result }) => ((result.applied?.cache ?? 'none') === 'none' ? 'No' : 'Yes')],
  ['Device', ({ result }) => (result.backend === 'webgpu' ? 'WebGPU' : 'CPU')],
];

/** The settings in which two videos differ, in the order of the form. */
export function settingDifferences(first: Completed, second: Completed): SettingDifference[] {
  return settings
    .map(([name, value]) => ({ name, first: value(first), second: value(second) }))
    .filter((row) => row.first !== row.second);
}

function stepsText(asked: number, { applied, lastStep }: Completed['result']): string {
  const steps = applied?.steps ?? asked;
  return lastStep ? `${lastStep.step} of ${steps}` : String(steps);
}

function shiftText(asked: number, { applied }: Completed['result']): string {
  if (!applied) return String(asked);
  return applied.flow_shift === null ? 'None' : String(applied.flow_shift);
}
