import type { ModelConfig } from '../config';
import {
  type TensorShapes,
  textEncoderTensors,
  tinyDecoderTensors,
  transformerTensors,
  vaeTensors,
} from '../tensors';

/** The components whose tensors have names and shapes of their own; an adapter has those of a LoRA. */
export const weightComponents = ['transformer', 'text_encoder', 'vae', 'tiny_decoder'] as const;
export type WeightComponent = (typeof weightComponents)[number];

/** What a component is called in messages. */
export const componentNames: Readonly<Record<WeightComponent, string>> = {
  transformer: 'transformer',
  text_encoder: 'text encoder',
  vae: 'VAE',
  tiny_decoder: 'tiny decoder',
};

/**
 * Every tensor that a component has by its configuration, by diffusers' names. A tiny decoder has no
 * configuration: its widths come from its own tensors.
 *
 * @param shape of a tensor by diffusers' name; undefined for one that is not there
 */
export function expectedTensors(
  component: WeightComponent,
  config: ModelConfig,
  shape: (name: string) => readonly number[] | undefined,
): TensorShapes {
  switch (component) {
    case 'transformer':
      return transformerTensors(config.transformer);
    case 'text_encoder':
      return textEncoderTensors(config.text_encoder);
    case 'vae':
      return vaeTensors(config.vae);
    case 'tiny_decoder':
      return tinyDecoderTensors(config.vae, shape);
  }
}
