import type { LatentSize } from '../../../pipeline/latents';
import { maxPromptTokens } from '../../umt5/text-encoder-config';
import { transformerDim } from '../config-schemas';
import type { ModelConfig } from '../model-config';
import { passFlops, tokensPerFrame } from '../tokens';
import { decoderFlops, nativeFrame } from './networks';
import type { Measured, SpeedLine } from './report';

/** 1280×704×121. */
export const nativeClip: LatentSize = { ...nativeFrame, frames: 31 };

/** What the measured rates of a mode come to for 1280×704×121; norms and what is around the blocks are not counted. */
export interface Projection {
  readonly mode: SpeedLine['mode'];
  /** By name; null for a decoder where no convolution was measured. */
  readonly seconds: Readonly<Record<string, number | null>>;
}

/** Seconds of networks, as the fastest measured operators compute them. */
export interface Projector {
  /** Of a pass over so many blocks. */
  pass(size: LatentSize, blocks: number): number;
  /** Null where no convolution was measured. */
  decode(decoder: 'tiny' | 'full', size: LatentSize): number | null;
}

/**
 * Projects the fastest measured operators of a mode; what the mode lacks is taken from `exact`.
 *
 * @returns null where its linears or its attention were not measured
 */
export function projectorOf(
  config: ModelConfig,
  lines: readonly SpeedLine[],
  mode: SpeedLine['mode'],
): Projector | null {
  const rateOf = (measurement: Measured, of: SpeedLine['mode'] = mode): number | null => {
    const same = lines.filter((line) => line.measurement === measurement && line.mode === of);
    const rate = Math.max(...same.map((line) => line.rate ?? 0));
    if (rate > 0) return rate;
    return of === 'exact' || of === 'runtime' ? null : rateOf(measurement, 'exact');
  };
  const [linear, attention] = [rateOf('linear'), rateOf('attention')];
  const convolution = rateOf('convolution');
  if (linear === null || attention === null) return null;
  const { transformer } = config;
  return {
    pass(size, blocks) {
      const tokens = size.frames * tokensPerFrame(transformer, size);
      const all = passFlops({ ...transformer, num_layers: blocks }, tokens, maxPromptTokens);
      const keys = tokens + maxPromptTokens;
      const attended = blocks * 4 * tokens * keys * transformerDim(transformer);
      return attended / attention + (all - attended) / linear;
    },
    decode: (decoder, size) => convolution && decoderFlops(config, decoder, size) / convolution,
  };
}

/** The projections of all modes of which something was measured. */
export function project(config: ModelConfig, lines: readonly SpeedLine[]): Projection[] {
  const modes = ['exact', 'fast', 'matrix', 'runtime'] as const;
  return modes.flatMap((mode) => {
    const projector = projectorOf(config, lines, mode);
    if (!projector || !lines.some((line) => line.mode === mode && line.rate !== null)) return [];
    const block = projector.pass(nativeClip, 1);
    const pass = config.transformer.num_layers * block;
    const seconds = {
      'one block': block,
      'one pass': pass,
      // A model that was distilled for few steps, and one with guidance.
      '4 steps': 4 * pass,
      '30 steps': 60 * pass,
      'small decoder': projector.decode('tiny', nativeClip),
      'full decoder': projector.decode('full', nativeClip),
    };
    return [{ mode, seconds }];
  });
}
