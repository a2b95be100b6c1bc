import type { Checkpoint, SafetensorsCheckpoint } from '../../weights';
import type { LoraArchitecture } from '../layers/lora';
import { imageAttention, loraArchitectureOf } from '../wan/lora';
import type { VideoConfig } from './config';
import { noiseOfLora } from './experts';

/**
 * A transformer, as LoRA files may change it. Files for the blocks' attention to an image do not tell the base: of
 * A14B, which has none, there are some that have it all the same. There these parts have no effect.
 */
export function loraArchitecture({ transformer }: VideoConfig): LoraArchitecture {
  return loraArchitectureOf(transformer, { ignoresImage: true });
}

/** The tensors of a LoRA that have no effect on a model. */
export function unusedTensors(
  checkpoint: Pick<Checkpoint, 'names'>,
  { ignores }: LoraArchitecture,
): string[] {
  return ignores ? [...checkpoint.names()].filter(ignores) : [];
}

/**
 * What a LoRA of this width was made for: a file for one expert is of Wan2.2, else its name tells, else that it has
 * parts for an image branch. The others, as those of text to video, are for both.
 *
 * @param name of the file
 */
export function baseOfLora(checkpoint: SafetensorsCheckpoint, name: string): string {
  const named = /wan[ _.-]?2[ _.-]?([12])/i.exec(name)?.[1];
  if (noiseOfLora({ name }, checkpoint.metadata) || named === '2') return '14B (Wan2.2)';
  const image = [...checkpoint.names()].some((key) => imageAttention.test(key));
  return named === '1' || image ? '14B (Wan2.1)' : '14B (Wan2.1, Wan2.2)';
}
