import type { Precision } from '../../contract';
import type { ComponentRecipe } from '../../weights/store/recipe';
import { plainRecipe } from '../layers/recipes';
import { textEncoderRecipe } from '../umt5/install';
import { transformerRecipe, vaeRecipe } from '../wan/recipes';
import type { ModelConfig } from './config';
import { type Expert, experts, expertsOf } from './experts';
import { imageEncoderTensors } from './image-encoder/image-encoder';

/** Components whose tensors are converted by the model's architecture. */
export type WeightComponent = Expert | 'text_encoder' | 'vae' | 'image_encoder';

/** Those that a model has. */
export function weightComponentsOf(config: ModelConfig): WeightComponent[] {
  const image = config.image_encoder ? (['image_encoder'] as const) : [];
  return [...expertsOf(config), 'text_encoder', 'vae', ...image];
}

/**
 * How a component is kept in the store: every tensor that the loaders read, in the order in which they read them.
 *
 * @param precision of the model; VAE and image encoder have none, and the text encoder at least 8 bits
 */
export function componentRecipe(
  component: WeightComponent,
  config: ModelConfig,
  precision: Precision,
): ComponentRecipe {
  switch (component) {
    case 'text_encoder':
      return textEncoderRecipe(config.text_encoder, precision);
    case 'vae':
      return { component, tensors: vaeRecipe(config.vae) };
    case 'image_encoder':
      return plainRecipe(component, imageShapes(config));
    default:
      return { component, tensors: transformerRecipe(config.transformer, precision) };
  }
}

function imageShapes({ image_encoder: encoder }: ModelConfig) {
  const shapes = encoder ? [...imageEncoderTensors(encoder)] : [];
  return new Map(shapes.map(([name, shape]) => [name, { shape }] as const));
}

/** Whether a component is one of the transformers. */
export function isExpert(component: string): component is Expert {
  return experts.some((expert) => expert === component);
}
