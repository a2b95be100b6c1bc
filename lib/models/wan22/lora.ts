import type { LoraArchitecture } from '../layers/lora';
import type { TransformerConfig } from '../wan/config';
import { loraArchitectureOf } from '../wan/lora';

/** The transformer, as LoRA files may change it. */
export function loraArchitecture(config: TransformerConfig): LoraArchitecture {
  return loraArchitectureOf(config);
}
