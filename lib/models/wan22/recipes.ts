import type { Precision } from '../../contract';
import type { ComponentRecipe } from '../../weights/store/recipe';
import { textEncoderRecipe } from '../umt5/install';
import { transformerRecipe, vaeRecipe } from '../wan/recipes';
import type { ModelConfig } from './config';
import type { WeightComponent } from './naming/expected';

/** Components whose tensors are converted by the model's architecture. */
export type ConvertedComponent = Exclude<WeightComponent, 'light_decoder' | 'tiny_decoder'>;

/**
 * How a component is kept in the store: every tensor that the loaders read, in the order in which they read them, so
 * that a layer is one contiguous read. Tensors that no loader reads are left out.
 *
 * @param precision of the model; the VAE has none, and the text encoder at least 8 bits
 */
export function componentRecipe(
  component: ConvertedComponent,
  config: ModelConfig,
  precision: Precision,
): ComponentRecipe {
  switch (component) {
    case 'transformer':
      return { component, tensors: transformerRecipe(config.transformer, precision) };
    case 'text_encoder':
      return textEncoderRecipe(config.text_encoder, precision);
    case 'vae':
      return { component, tensors: vaeRecipe(config.vae) };
  }
}
