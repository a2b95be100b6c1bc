import { transformerDim } from '../../../wan/config';
import { decodeCost, decoderGraphs } from '../../../wan/vae';
import type { ModelConfig } from '../../config';
import type { BlockLine } from '.';
import { caseNames, nativeTokens, textTokens } from './cases';
import type { KernelFamily, KernelLine } from './measure';

/** What the measured rates come to for 1280×704×121; norms and what is around the blocks are not counted. */
export interface Projection {
  readonly mode: KernelLine['mode'];
  /** One block of the transformer. */
  readonly blockSeconds: number;
  /** All blocks. */
  readonly passSeconds: number;
  /** Four passes: a model that was distilled for few steps. */
  readonly fourStepsSeconds: number;
  /** 30 steps with guidance: sixty passes. */
  readonly thirtyStepsSeconds: number;
  /** The full decoder; null where no convolution was measured. */
  readonly decodeSeconds: number | null;
  /** How far the same projection of the measured block is off, such as 0.1 where it is 10 % too long; null without one. */
  readonly error: number | null;
}

/**
 * Projects the fastest measured kernels to a video. A kernel that a mode lacks is taken from `exact`; one that was not
 * measured has the rate of its family's fastest.
 *
 * @param blocks whole blocks that were measured
 * @returns nothing for a mode whose linears or attention were not measured
 */
export function project(
  config: ModelConfig,
  lines: readonly KernelLine[],
  blocks: readonly BlockLine[] = [],
): Projection[] {
  const { transformer } = config;
  const d = transformerDim(transformer);
  const workOf = (tokens: number): readonly [KernelFamily, string, number][] => {
    const linear = 2 * tokens * d;
    return [
      // Six of the tokens, two of the text.
      ['linear', caseNames.projection, 6 * linear * d + 4 * textTokens * d ** 2],
      ['linear', caseNames.up, linear * transformer.ffn_dim],
      ['linear', caseNames.down, linear * transformer.ffn_dim],
      ['attention', caseNames.self, 4 * tokens ** 2 * d],
      ['attention', caseNames.cross, 4 * tokens * textTokens * d],
    ];
  };
  const decode = decodeCost(
    decoderGraphs(config.vae, { latentHeight: 44, latentWidth: 80 }),
    31,
  ).flops;
  const modes = ['exact', 'fast', 'matrix', 'runtime'] as const;
  return modes.flatMap((mode) => {
    const own = lines.filter((line) => line.mode === mode);
    if (own.every(({ rate }) => rate === null)) return [];
    const allowed = mode === 'runtime' ? [mode] : [mode, 'exact'];
    const usable = lines.filter((line) => allowed.includes(line.mode));
    const rateOf = (family: KernelFamily, name?: string): number | null => {
      const ofFamily = usable.filter((line) => line.family === family);
      const ofCase = ofFamily.filter((line) => line.case === name);
      return fastest(ofCase) ?? fastest(ofFamily);
    };
    const secondsOf = (tokens: number) =>
      workOf(tokens).reduce((sum, [family, name, flops]) => {
        const rate = rateOf(family, name);
        return rate === null ? Number.NaN : sum + flops / rate;
      }, 0);
    const blockSeconds = secondsOf(nativeTokens);
    if (Number.isNaN(blockSeconds)) return [];
    const block = blocks.find((measured) => measured.mode === mode);
    const passSeconds = transformer.num_layers * blockSeconds;
    const convolution = rateOf('convolution');
    return [
      {
        mode,
        blockSeconds,
        passSeconds,
        fourStepsSeconds: 4 * passSeconds,
        thirtyStepsSeconds: 60 * passSeconds,
        decodeSeconds: convolution && decode / convolution,
        error: block ? secondsOf(block.tokens) / block.seconds.truest - 1 : null,
      },
    ];
  });
}

function fastest(lines: readonly KernelLine[]): number | null {
  const rates = lines.flatMap(({ rate }) => (rate === null ? [] : [rate]));
  return rates.length > 0 ? Math.max(...rates) : null;
}
