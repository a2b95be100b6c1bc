import type { Completed, ParametersInput, Prediction } from '../../../lib/contract';
import { t } from '../../texts';
import '../../texts/en/result';

/** Length of a video in seconds, to a tenth; of one that is not finished, as it was asked for. */
export function secondsOf(prediction: Prediction): number {
  if (prediction.status !== 'completed' || !prediction.parts) return prediction.parameters.duration;
  const { frames, frameRate } = prediction.result;
  return Math.round((frames / frameRate) * 10) / 10;
}

/** The steps that a video was made with: what a profile made of them counts, not what was asked for. */
export function stepsText({ parameters, result: { applied, lastStep } }: Completed): string {
  const steps = applied?.steps ?? parameters.num_inference_steps;
  return lastStep ? t('result.stepOf', { step: lastStep.step, steps }) : String(steps);
}

/** The flow shift that a video was made with. */
export function flowShiftText({ parameters, result: { applied } }: Completed): string {
  if (!applied) return String(parameters.flow_shift);
  return applied.flow_shift === null ? t('shared.none') : String(applied.flow_shift);
}

/** The end image, and its second where it is not the end; null without one. */
export function lastImageText({ parameters, options }: Completed): string | null {
  const name = options.lastImage?.name;
  const { last_image_at: second } = parameters;
  if (name === undefined || second === undefined) return name ?? null;
  return t('result.endAt', { name, second });
}

/** `style.safetensors × 0.8, other.safetensors × 1` */
export function loraText({ loras = [] }: Pick<ParametersInput, 'loras'>): string {
  return loras.map(({ path, scale }) => `${path} × ${scale}`).join(', ');
}
