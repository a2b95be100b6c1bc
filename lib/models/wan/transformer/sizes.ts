import { maxPromptTokens } from '../../umt5/text-encoder-config';
import { type TransformerConfig, transformerDim } from '../config-schemas';

/*
 * The tensors of a clip on the device beside those of its executor, by their sizes; all are f32. A run takes what is
 * listed here, and the memory plan counts it.
 */

/** Of a clip of so many tokens. */
export function clipSizes(
  config: TransformerConfig,
  tokens: number,
  {
    guided,
    reusesBlocks = false,
    imageRows = 0,
  }: {
    readonly guided: boolean;
    readonly reusesBlocks?: boolean;
    readonly imageRows?: number | undefined;
  },
) {
  const d = transformerDim(config);
  const rows = [tokens, d];
  const condition = conditionWidth(config);
  const angles = [tokens, config.attention_head_dim / 2];
  const branches = guided ? [rows, rows] : [rows];
  return {
    /** The residual streams, by guidance branch. */
    streams: branches,
    /** What all blocks together added, by branch; none where no step reuses it. */
    residuals: reusesBlocks ? branches : [],
    rotary: { cos: angles, sin: angles },
    /** What the clip is conditioned by beside its latents, and the embedded image. */
    conditions: {
      ...(condition > 0 && { condition: [tokens, condition] }),
      ...(imageRows > 0 && { image: [imageRows, d] }),
    },
  };
}

/** Of a timestep. */
export function timeSizes(config: TransformerConfig) {
  const d = transformerDim(config);
  return { sinusoid: [1, config.freq_dim], temb: [1, d], modulation: [6, d] };
}

/** Of a prompt of so many tokens: rows of them, and one for all that are empty. */
export function textSizes(config: TransformerConfig, tokens: number) {
  const rows = tokens + (tokens < maxPromptTokens ? 1 : 0);
  return { embeds: [rows, config.text_dim], context: [rows, transformerDim(config)] };
}

/** Values of a token. */
export function tokenWidth({ out_channels, patch_size: [, ph, pw] }: TransformerConfig): number {
  return out_channels * ph * pw;
}

/** Values of a token that it is conditioned by, from channels behind those of the latents. */
export function conditionWidth(config: TransformerConfig): number {
  const { in_channels, out_channels } = config;
  return (tokenWidth(config) * (in_channels - out_channels)) / out_channels;
}
