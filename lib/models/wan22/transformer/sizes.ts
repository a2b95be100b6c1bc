import { maxPromptTokens } from '../../umt5/config';
import { type TransformerConfig, transformerDim } from '../config';

/*
 * The tensors of a clip on the device beside those of its executor, by their sizes; all are f32. A run takes what is
 * listed here, and the memory plan counts it.
 */

/** Of a clip of so many tokens. */
export function clipSizes(
  config: TransformerConfig,
  tokens: number,
  { guided, reusesBlocks = false }: { readonly guided: boolean; readonly reusesBlocks?: boolean },
) {
  const rows = [tokens, transformerDim(config)];
  const angles = [tokens, config.attention_head_dim / 2];
  const branches = guided ? [rows, rows] : [rows];
  return {
    /** The residual streams, by guidance branch. */
    streams: branches,
    /** What all blocks together added, by branch; none where no step reuses it. */
    residuals: reusesBlocks ? branches : [],
    rotary: { cos: angles, sin: angles },
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
export function tokenWidth({ in_channels, patch_size: [, ph, pw] }: TransformerConfig): number {
  return in_channels * ph * pw;
}
