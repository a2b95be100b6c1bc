import type { Backend, DeviceTensor, TensorPool } from '../../../gpu';
import {
  type Compute,
  type ConvolutionVariant,
  channelNormDispatches,
  convolutionDispatches,
  type Storage,
  storageOf,
} from '../../../gpu/kernels';
import { extentOf, type Image } from './bands';
import {
  type ConvolutionLayer,
  shortcutPicks,
  type Upsample,
  type UpsampleLayer,
  type Workspace,
} from './layers';

/*
 * The decoder's layers as kernels of our own. What a convolution knows of the past are its newest
 * activated inputs, each an image of its own: no frame is copied, and the oldest one's memory is the
 * next one's.
 */

/** What the layers share. */
export interface KernelSetting {
  readonly compute: Compute;
  readonly variant: ConvolutionVariant;
  /** Of images and weights, but for latents, results and all images of latent size, which are f32. */
  readonly storage: Storage;
}

/** Type of a tensor in a storage. */
export const dtypes = { f32: 'float32', f16: 'float16' } as const;

/** Weights and bias as `convolutionDispatches` wants them. */
export interface KernelWeights {
  readonly weights: DeviceTensor;
  readonly bias: DeviceTensor;
}

/** The newest inputs of a convolution over time. */
export class FrameHistory {
  /** The newest first. */
  frames: readonly Image[] = [];

  constructor(readonly caches: TensorPool) {}

  push(frame: Image): void {
    this.frames = [frame, ...this.frames];
  }

  /** Gives the frame back that the next step does not need. */
  trim(): void {
    const [, , oldest] = this.frames;
    if (oldest) this.caches.give(oldest);
    this.frames = this.frames.slice(0, 2);
  }

  /** Forgets all frames; their memory belongs to the pool. */
  reset(): void {
    this.frames = [];
  }
}

export interface KernelConvolutionShape {
  readonly inputs: number;
  readonly filters: number;
  readonly kernel: 1 | 3;
  /** Channels of an image that goes through a 1×1 convolution and is added; 0 where it is added as it is. */
  readonly shortcutInputs?: number;
  /** Storage of the result; that of the input, or of the residual, when absent. */
  readonly output?: Storage;
}

/** A convolution of frames by a kernel of our own. */
export class KernelConvolution implements ConvolutionLayer {
  /**
   * @param history null for a convolution of single frames. Of two that share one, the first adds each frame
   * @param role which of two convolutions with one history this is
   */
  constructor(
    readonly workspace: Workspace,
    readonly setting: KernelSetting,
    readonly shape: KernelConvolutionShape,
    readonly weights: KernelWeights,
    readonly gamma: DeviceTensor | null,
    readonly history: FrameHistory | null,
    readonly role: 'only' | 'first' | 'second' = 'only',
  ) {}

  reset(): void {
    this.history?.reset();
  }

  /** The result takes the place of a `residual` that it may overwrite, where it is added as it is. */
  async step(x: Image, residual?: Image, overwrite = false): Promise<Image> {
    const { workspace, setting, shape, weights, history, role, gamma } = this;
    const { compute, variant } = setting;
    const { height, width } = extentOf(x);
    const { inputs, filters, kernel, shortcutInputs = 0 } = shape;
    const norm = gamma && this.#activated(x, gamma, residual);
    if (history && role !== 'second') history.push(norm?.image ?? this.#copied(x));
    const frames = history?.frames ?? [norm?.image ?? x];
    const input = storageOf(frames[0] ?? x);
    const output = shape.output ?? (residual ? storageOf(residual) : input);
    const inPlace = overwrite && shortcutInputs === 0;
    const y =
      inPlace && residual ? residual : workspace.image(height, width, filters, dtypes[output]);
    const side = y === residual ? undefined : residual;
    const added = shortcutInputs > 0 ? 'linear' : side ? 'same' : 'stored';
    const convolution = convolutionDispatches(
      compute,
      variant,
      {
        frames: history ? 3 : 1,
        input,
        weight: storageOf(weights.weights),
        output,
        residual: residual ? added : 'none',
        side: residual ? storageOf(residual) : input,
        bias: true,
        wholeVectors: true,
      },
      {
        ...weights,
        x: frames,
        side,
        y,
        height,
        width,
        inputs,
        filters,
        kernel: [kernel, kernel],
        pads: kernel === 3 ? [1, 1] : [0, 0],
        outputHeight: height,
        outputWidth: width,
        sideInputs: shortcutInputs || filters,
      },
    );
    await compute.dispatch([...(norm?.dispatches ?? []), ...convolution]);
    if (role !== 'first') history?.trim();
    return y;
  }

  /** The input behind norm and SiLU. A shortcut through the same kernel has the storage of its image. */
  #activated(x: Image, gamma: DeviceTensor, residual: Image | undefined) {
    const { workspace, setting, shape } = this;
    const { height, width } = extentOf(x);
    const storage = shape.shortcutInputs && residual ? storageOf(residual) : setting.storage;
    const image = workspace.caches.take([1, height, width, shape.inputs], dtypes[storage]);
    const run = { x, gamma, y: image, pixels: height * width, channels: shape.inputs };
    return { image, dispatches: channelNormDispatches(setting.compute, run) };
  }

  #copied(x: Image): Image {
    const { backend, caches } = this.workspace;
    const image = caches.take(x.dims, x.dtype);
    backend.copy(x, 0, image, 0, count(x));
    return image;
  }
}

/** Nearest ×2, 3×3 convolution and shortcut by a kernel of our own. */
export class KernelUpsample implements UpsampleLayer {
  constructor(
    readonly workspace: Workspace,
    readonly setting: KernelSetting,
    readonly channels: number,
    readonly shortcut: Upsample['shortcut'],
    readonly weights: KernelWeights,
  ) {}

  async step(x: Image, blockInput: Image, time: 0 | 1): Promise<Image> {
    const { workspace, setting, channels, shortcut, weights } = this;
    const { compute, variant, storage: output } = setting;
    const { height, width } = extentOf(x);
    const y = workspace.image(2 * height, 2 * width, channels, dtypes[output]);
    const { inputs, factorTime } = shortcut;
    const jobs = convolutionDispatches(
      compute,
      variant,
      {
        frames: 1,
        input: storageOf(x),
        weight: storageOf(weights.weights),
        output,
        residual: 'repeated',
        side: storageOf(blockInput),
        bias: true,
        wholeVectors: true,
      },
      {
        ...weights,
        x: [x],
        side: blockInput,
        y,
        height,
        width,
        inputs: channels,
        filters: channels,
        kernel: [2, 2],
        pads: [1, 1],
        outputHeight: height,
        outputWidth: width,
        scale: 2,
        sideInputs: inputs,
        picks: shortcutPicks(inputs, channels, factorTime, time),
      },
    );
    await compute.dispatch(jobs);
    return y;
  }
}

const count = ({ dims }: Image) => dims.reduce((product, size) => product * size, 1);

/** The setting that a backend's kernels were chosen with; null where the runtime computes the layers. */
export function kernelSetting({ kernels, compute }: Backend): KernelSetting | null {
  const { convolution = null, storage = 'f16' } = kernels?.choice ?? {};
  return convolution && compute && { compute, variant: convolution, storage };
}
