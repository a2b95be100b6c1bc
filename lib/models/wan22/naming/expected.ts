import type { ComponentArchitecture } from '../../naming/component';
import { textEncoderArchitecture } from '../../umt5/naming';
import { wanArchitecture } from '../../wan/naming';
import type { ModelConfig } from '../config';

/** The components whose tensors have names and shapes of their own; an adapter has those of a LoRA. */
export const weightComponents = [
  'transformer',
  'text_encoder',
  'vae',
  'light_decoder',
  'tiny_decoder',
] as const;
export type WeightComponent = (typeof weightComponents)[number];

/** A component by its configuration, as weight files may have it. */
export function architectureOf(
  component: WeightComponent,
  config: ModelConfig,
): ComponentArchitecture {
  if (component === 'text_encoder') return textEncoderArchitecture(config.text_encoder);
  return wanArchitecture(component, config);
}
