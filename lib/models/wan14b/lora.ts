import type { LoraArchitecture } from '../layers/lora';
import { loraArchitectureOf } from '../wan/lora';
import type { VideoConfig } from './config';

/**
 * A transformer, as LoRA files may change it. Files for the blocks' attention to an image do not tell the base: of
 * A14B, which has none, there are some that have it all the same. There these parts have no effect.
 */
export function loraArchitecture({ transformer }: VideoConfig): LoraArchitecture {
  return loraArchitectureOf(transformer, { ignoresImage: true });
}
