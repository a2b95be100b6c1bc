import { type ComponentArchitecture, diffusersNaming } from '../../naming/component';
import { textEncoderArchitecture } from '../../umt5/naming';
import { originalTransformerName, originalVaeName } from '../../wan/original-names';
import { tinyDecoderTensors, transformerTensors, vaeTensors } from '../../wan/tensors';
import type { ModelConfig } from '../config';

/** The components whose tensors have names and shapes of their own; an adapter has those of a LoRA. */
export const weightComponents = ['transformer', 'text_encoder', 'vae', 'tiny_decoder'] as const;
export type WeightComponent = (typeof weightComponents)[number];

/** A component by its configuration, as weight files may have it. */
export function architectureOf(
  component: WeightComponent,
  config: ModelConfig,
): ComponentArchitecture {
  switch (component) {
    case 'transformer':
      return {
        name: 'transformer',
        tensors: () => transformerTensors(config.transformer),
        namings: [diffusersNaming, { name: 'original', rename: originalTransformerName }],
        prefixes: ['', 'model.diffusion_model.', 'diffusion_model.', 'model.', 'transformer.'],
      };
    case 'text_encoder':
      return textEncoderArchitecture(config.text_encoder);
    case 'vae':
      return {
        name: 'VAE',
        tensors: () => vaeTensors(config.vae),
        namings: [
          diffusersNaming,
          { name: 'original', rename: (name) => originalVaeName(name, config.vae) },
        ],
        prefixes: ['', 'model.', 'vae.', 'first_stage_model.'],
      };
    case 'tiny_decoder':
      return {
        name: 'tiny decoder',
        // It has no configuration: its widths come from its own tensors.
        tensors: (shapeOf) => tinyDecoderTensors(config.vae, shapeOf),
        namings: [diffusersNaming],
        prefixes: ['', 'model.'],
        // Only the decoding half of a tiny autoencoder is used.
        harmless: [/^encoder\./],
      };
  }
}
