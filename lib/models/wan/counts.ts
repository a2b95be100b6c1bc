import type { DecoderKind, Precision } from '../../contract';
import type { LatentSize } from '../../pipeline/latents';
import type { ModelCounts } from '../../pipeline/model';
import { storedBytes } from '../../weights/store';
import type { ComponentRecipe } from '../../weights/store/layout';
import { branchRank } from '../layers/lora';
import type { TensorShapes } from '../layers/tensor-shapes';
import { maxPromptTokens } from '../umt5/text-encoder-config';
import type { ModelConfig } from './model-config';
import { planWan, usualChoice } from './model-memory';
import { componentRecipe } from './recipes';
import { publishedTinyDecoder, tinyGraphs } from './tiny-decoder/tiny-decoder-weights';
import { passFlops, tokensPerFrame } from './tokens';
import { blockLinears } from './transformer/transformer-network';
import { decodeCost, decoderGraphs } from './vae';

/**
 * What a pass over a clip and its decode compute.
 *
 * @param tinyDecoder tensors of the tiny decoder; null where the VAE decodes
 */
export function clipComputation(
  { transformer, vae }: Pick<ModelConfig, 'transformer' | 'vae'>,
  size: LatentSize,
  tinyDecoder: TensorShapes | null,
) {
  const tokens = size.frames * tokensPerFrame(transformer, size);
  const frame = { latentHeight: size.height, latentWidth: size.width };
  return {
    pass: {
      flops: passFlops(transformer, tokens, maxPromptTokens),
      // Of the runtime, without chunks: three passes of each block over its rows; embedding and head.
      calls: 3 * transformer.num_layers + 2,
    },
    decode: decodeCost(
      tinyDecoder ? tinyGraphs(tinyDecoder, frame) : decoderGraphs(vae, frame),
      size.frames,
    ),
  };
}

/**
 * A model that is not opened, counted by its configuration. Its tiny decoder is taken for the published one, and its
 * light decoder for one of half the width.
 */
export function countWan(config: ModelConfig, precision: Precision): ModelCounts {
  const { vae } = config;
  const tinyDecoder = publishedTinyDecoder(config);
  const half = { ...config, vae: { ...vae, decoder_base_dim: vae.decoder_base_dim / 2 } };
  const configFor = (decoder: DecoderKind | undefined) => (decoder === 'light' ? half : config);
  const bytes = {
    text: storedBytes(withoutEmbeddings(componentRecipe('text_encoder', config, precision))),
    denoise: storedBytes(componentRecipe('transformer', config, precision)),
  };
  return {
    latents: {
      strides: { space: vae.scale_factor_spatial, time: vae.scale_factor_temporal },
    },
    computation: (size, decoder) =>
      clipComputation(configFor(decoder), size, decoder === 'tiny' ? tinyDecoder : null),
    weightBytes: (stage) => bytes[stage],
    async planMemory({ kernels = 'exact', decoder, adapters = [], ...request }) {
      const chosen = usualChoice(kernels);
      const rank = branchRank(adapters.reduce((sum, adapter) => sum + (adapter.rank ?? 0), 0));
      const up = new (adapters.every(({ bits }) => bits === 16) ? Uint16Array : Float32Array)();
      const branches = new Map(
        Array.from({ length: config.transformer.num_layers }, (_, block) =>
          blockLinears(config.transformer).map((layer) => `blocks.${block}.${layer}`),
        ).flatMap((layers) => layers.map((layer) => [layer, { rank, up }])),
      );
      return planWan(configFor(decoder), precision, {
        ...request,
        kernels: chosen,
        ...(rank > 0 && { lora: { branches } }),
        ...(decoder === 'tiny' && { tinyDecoder }),
      });
    },
  };
}

/** A prompt reads only its own rows of the embedding table. */
function withoutEmbeddings(recipe: ComponentRecipe): ComponentRecipe {
  return { ...recipe, tensors: recipe.tensors.filter(({ name }) => name !== 'shared.weight') };
}
