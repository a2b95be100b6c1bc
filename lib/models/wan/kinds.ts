import type { LoraNeed } from '../../contract/v3';

/** What tells transformers apart; what a shard does not have is undefined. */
export interface TransformerFacts {
  readonly width: number | undefined;
  readonly inputs: number | undefined;
  /** Whether blocks attend to an image. */
  readonly image: boolean;
}

/**
 * What tells one kind of Wan model from another before a configuration is read. The configuration tells the rest: the
 * transformers and the timestep at which they change, and whether there is an image encoder.
 */
export interface WanKind {
  /** In messages, after `a`. */
  readonly name: string;
  /**
   * How a clip is given pictures: as latent frames that it keeps, or in further channels of the transformer's input.
   * `model_index.json` tells them apart by `expand_timesteps`: frames that are kept have a timestep of their own.
   */
  readonly pictures: 'frames' | 'channels';
  /** Of the VAE of Wan2.2, whose levels have shortcuts around them, or of the plain one of Wan2.1. */
  readonly latentChannels: 48 | 16;
  /**
   * Whether models of this width have one transformer or a pair for high and for low noise, with an image branch or
   * without one: files and LoRAs are then told apart by their names.
   */
  readonly varies: boolean;
  /** Whether a transformer may be one of its own. */
  readonly takes: (facts: TransformerFacts) => boolean;
  /** The need of a job with a LoRA, which a worker has to know. */
  readonly loraNeed: LoraNeed;
}

/** The kinds, by the family that manifests name. */
export const wanKinds = {
  wan22: {
    name: 'Wan2.2-TI2V',
    pictures: 'frames',
    latentChannels: 48,
    varies: false,
    takes: ({ width, inputs }) =>
      width !== 5120 &&
      width !== 1536 &&
      inputs !== 36 &&
      (width !== 3072 || !Number.isInteger(inputs) || inputs === 48),
    loraNeed: 'lora_5b',
  },
  wan14b: {
    name: 'Wan 14B',
    pictures: 'channels',
    latentChannels: 16,
    varies: true,
    takes: ({ width, inputs }) =>
      inputs === 36 || (inputs === undefined && width !== 3072 && width !== 1536),
    loraNeed: 'lora_14b',
  },
} as const satisfies Record<string, WanKind>;
