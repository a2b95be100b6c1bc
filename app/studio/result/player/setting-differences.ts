import { type Completed, formatSize } from '../../../../lib/contract';
import { t } from '../../../texts';
import '../../../texts/en/result';
import { adapterText } from '../../form/profile-text';
import { flowShiftText, lastImageText, loraText, secondsOf, stepsText } from '../video-facts';

type Setting =
  | 'prompt'
  | 'negativePrompt'
  | 'model'
  | 'speed'
  | 'size'
  | 'duration'
  | 'loop'
  | 'lastImage'
  | 'frameRate'
  | 'steps'
  | 'guidance'
  | 'flowShift'
  | 'seed'
  | 'loras'
  | 'adapter'
  | 'decoder'
  | 'reused'
  | 'device';

/** A setting in which two videos differ, as a person reads it. */
export interface SettingDifference {
  readonly setting: Setting;
  readonly first: string;
  readonly second: string;
}

/** Each setting with its value. What a profile made of it counts, not what was asked for. */
const settings: readonly (readonly [setting: Setting, value: (video: Completed) => string])[] = [
  ['prompt', ({ parameters, result }) => result.promptOptimization?.text ?? parameters.prompt],
  ['negativePrompt', ({ parameters }) => parameters.negative_prompt],
  ['model', ({ model }) => model],
  ['speed', ({ profile }) => t(`names.profile.${profile}`)],
  ['size', ({ result }) => formatSize(`${result.width}*${result.height}`)],
  ['duration', (video) => t('common.seconds', { seconds: secondsOf(video) })],
  ['loop', ({ parameters }) => t(parameters.loop ? 'result.yes' : 'result.no')],
  ['lastImage', (video) => lastImageText(video) ?? t('result.no')],
  ['frameRate', ({ result }) => String(result.frameRate)],
  ['steps', stepsText],
  [
    'guidance',
    ({ parameters, result }) => String(result.applied?.guidance_scale ?? parameters.guidance_scale),
  ],
  ['flowShift', flowShiftText],
  ['seed', ({ result }) => String(result.seed)],
  ['loras', ({ parameters }) => loraText(parameters)],
  [
    'adapter',
    ({ result: { applied } }) =>
      applied?.adapter ? adapterText(applied.adapter) : t('shared.none'),
  ],
  ['decoder', ({ result }) => t(`result.${result.applied?.decoder ?? 'full'}`)],
  [
    'reused',
    ({ result }) => t((result.applied?.cache ?? 'none') === 'none' ? 'result.no' : 'result.yes'),
  ],
  ['device', ({ result }) => (result.backend === 'webgpu' ? 'WebGPU' : 'CPU')],
];

/** The settings in which two videos differ, in the order of the form. */
export function settingDifferences(first: Completed, second: Completed): SettingDifference[] {
  return settings
    .map(([setting, value]) => ({ setting, first: value(first), second: value(second) }))
    .filter((row) => row.first !== row.second);
}
