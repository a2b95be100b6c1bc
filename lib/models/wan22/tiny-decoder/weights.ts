import { at, KinoraError } from '../../../contract';
import type { Bindings, DeviceTensor, Scope } from '../../../gpu';
import type { Checkpoint } from '../../../weights';
import { allPhases, transposed, uploadPhases } from '../vae/weights';
import type { ConvolutionSpec, Variant } from './graphs';
import { tinyDecoderKeys } from './keys';

/** What a tiny decoder reads of its file. */
export type TinyCheckpoint = Pick<Checkpoint, 'has' | 'shape' | 'read' | 'bytes'>;

/** A memory block sees its own input of one frame earlier. */
export interface MemoryBlock {
  readonly channels: number;
  readonly weights: Bindings;
  /** Input of the last frame; none at the start of a clip. */
  previous: DeviceTensor<'float32'> | null;
}

export interface Stage {
  readonly blocks: readonly MemoryBlock[];
  /** Channels before and after the stage's end. */
  readonly inputs: number;
  readonly outputs: number;
  readonly weights: Bindings;
  /** TGrow: per frame that is made, its 1×1 convolution as [K, N]. */
  readonly grow: readonly DeviceTensor[];
}

export interface Convolution {
  readonly spec: ConvolutionSpec;
  readonly weights: Bindings;
}

export interface TinyNetwork {
  readonly variant: Variant;
  readonly first: Convolution;
  readonly stages: readonly Stage[];
  readonly last: Convolution;
}

export interface TinyLoadOptions {
  /** Called with the stored size of each tensor that was read. */
  readonly onBytes?: (bytes: number) => void;
  readonly signal?: AbortSignal;
}

/** @throws KinoraError `TENSOR_MISSING` when the file is neither variant */
function variantOf(checkpoint: TinyCheckpoint): Variant {
  if (checkpoint.has('decoder.0.weight')) return 'super';
  if (checkpoint.has('decoder.1.weight')) return 'base';
  throw new KinoraError(
    'TENSOR_MISSING',
    'The file is no tiny decoder: it has neither decoder.0.weight nor decoder.1.weight.',
  );
}

/** Reads a tiny decoder into device memory of a scope. */
export class TinyLoader {
  constructor(
    readonly scope: Scope,
    readonly checkpoint: TinyCheckpoint,
    readonly options: TinyLoadOptions,
  ) {}

  async network(): Promise<TinyNetwork> {
    const variant = variantOf(this.checkpoint);
    const { first, stages, last } = tinyDecoderKeys[variant];
    const base = variant === 'base';
    const loaded: Stage[] = [];
    const start = await this.#convolution(
      `decoder.${first}`,
      base ? { before: 'soft clamp', after: 'relu' } : { before: 'nothing', after: 'nothing' },
    );
    for (const stage of stages) loaded.push(await this.#stage(variant, stage));
    return {
      variant,
      first: start,
      stages: loaded,
      last: await this.#convolution(`decoder.${last}`, {
        before: base ? 'relu' : 'nothing',
        after: 'nothing',
      }),
    };
  }

  async #convolution(
    name: string,
    activations: Pick<ConvolutionSpec, 'before' | 'after'>,
  ): Promise<Convolution> {
    const shape = this.checkpoint.shape(`${name}.weight`);
    const [filters, inputs, kernel] = [at(shape, 0), at(shape, 1), at(shape, 2)];
    const bias = this.checkpoint.has(`${name}.bias`);
    if (kernel !== 1 && kernel !== 3) {
      throw new KinoraError('TENSOR_SHAPE', `${name}.weight has a kernel of ${kernel}.`);
    }
    const { convLayout } = this.scope.backend;
    return {
      spec: { layout: convLayout, inputs, filters, kernel, bias, ...activations },
      weights: {
        weight: await this.#tensor(`${name}.weight`),
        ...(bias && { bias: await this.#tensor(`${name}.bias`) }),
      },
    };
  }

  async #stage(
    variant: Variant,
    indices: (typeof tinyDecoderKeys)[Variant]['stages'][number],
  ): Promise<Stage> {
    const blocks: MemoryBlock[] = [];
    for (const index of indices.blocks) blocks.push(await this.#block(variant, index));
    const name = `decoder.${indices.convolution}`;
    const shape = this.checkpoint.shape(`${name}.weight`);
    const [filters, inputs] = [at(shape, 0), at(shape, 1)];
    const base = variant === 'base';
    const outputs = base ? filters : filters / 4;
    const weights = base
      ? uploadPhases(
          this.scope,
          allPhases(await this.#read(`${name}.weight`), filters * inputs),
          filters,
          inputs,
        )
      : {
          weight: this.scope.float32(
            this.checkpoint.shape(`${name}.weight`),
            'weights',
            shuffledFilters(await this.#read(`${name}.weight`), outputs),
          ),
          bias: this.scope.float32(
            [filters],
            'weights',
            shuffledFilters(await this.#read(`${name}.bias`), outputs),
          ),
        };
    const grow = await this.#growth(`decoder.${indices.grow}.conv.weight`, indices.frames);
    return { blocks, inputs, outputs, weights, grow };
  }

  async #block(variant: Variant, index: number): Promise<MemoryBlock> {
    const prefix = `decoder.${index}.conv`;
    if (variant === 'base') {
      const channels = at(this.checkpoint.shape(`${prefix}.0.weight`), 0);
      const weights: Record<string, DeviceTensor> = {};
      for (const i of [0, 1, 2]) {
        weights[`weight${i}`] = await this.#tensor(`${prefix}.${2 * i}.weight`);
        weights[`bias${i}`] = await this.#tensor(`${prefix}.${2 * i}.bias`);
      }
      return { channels, weights, previous: null };
    }
    const channels = at(this.checkpoint.shape(`${prefix}.3.weight`), 0);
    const weights = {
      depthwise: await this.#tensor(`${prefix}.0.weight`),
      widen: await this.#matrix(`${prefix}.1.weight`),
      widenBias: await this.#tensor(`${prefix}.1.bias`),
      narrow: await this.#matrix(`${prefix}.3.weight`),
    };
    return { channels, weights, previous: null };
  }

  /**
   * TGrow [frames·C, C, 1, 1] as one matrix [C, C] per frame, the earliest first. A file may have
   * more rows than there are frames: the last ones count.
   */
  async #growth(name: string, frames: number): Promise<DeviceTensor[]> {
    const shape = this.checkpoint.shape(name);
    const [rows, channels] = [at(shape, 0), at(shape, 1)];
    const surplus = rows - frames * channels;
    if (surplus < 0) {
      throw new KinoraError(
        'TENSOR_SHAPE',
        `${name} has ${rows} rows; ${frames} frames of ${channels} channels need more.`,
      );
    }
    const data = await this.#read(name);
    return Array.from({ length: frames }, (_, frame) => {
      const start = (surplus + frame * channels) * channels;
      const part = data.subarray(start, start + channels * channels);
      return this.scope.float32(
        [channels, channels],
        'weights',
        transposed(part, channels, channels),
      );
    });
  }

  /** A 1×1 convolution [N, K, 1, 1] as matrix [K, N]. */
  async #matrix(name: string): Promise<DeviceTensor> {
    const shape = this.checkpoint.shape(name);
    const [filters, inputs] = [at(shape, 0), at(shape, 1)];
    const data = transposed(await this.#read(name), filters, inputs);
    return this.scope.float32([inputs, filters], 'weights', data);
  }

  async #tensor(name: string): Promise<DeviceTensor> {
    return this.scope.float32(this.checkpoint.shape(name), 'weights', await this.#read(name));
  }

  async #read(name: string): Promise<Float32Array> {
    this.options.signal?.throwIfAborted();
    const data = await this.checkpoint.read(name);
    this.options.onBytes?.(this.checkpoint.bytes(name));
    return data;
  }
}

/** Filters in PyTorch's order (channel, row, column) → (row, column, channel). */
function shuffledFilters(data: Float32Array, channels: number): Float32Array {
  const size = data.length / (4 * channels);
  const out = new Float32Array(data.length);
  for (let c = 0; c < channels; c++) {
    for (let pixel = 0; pixel < 4; pixel++) {
      const source = (c * 4 + pixel) * size;
      out.set(data.subarray(source, source + size), (pixel * channels + c) * size);
    }
  }
  return out;
}
