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
 * The model that a LoRA of this width was made for: Wan2.2 if the file is for one expert, else by its name, else by
 * parts for an image branch. Others, such as those of text to video, are for both.
 *
 * @param name of the file
 */
export function baseOfLora(checkpoint: SafetensorsCheckpoint, name: string): string {
  const named = /wan[ _.-]?2[ _.-]?([12])/i.exec(name)?.[1];
  if (noiseOfLora({ name }, checkpoint.metadata) || named === '2') return '14B (Wan2.2)';
  const image = [...checkpoint.names()].some((key) => imageAttention.test(key));
  return named === '1' || image ? '14B (Wan2.1)' : '14B (Wan2.1, Wan2.2)';
}
