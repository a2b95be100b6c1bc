import { type Backend, type Bindings, TensorPool } from '../../../gpu';
import { type Band, bandsOf, defaultBandBytes, extentOf, type Image, RowCopier } from './bands';
import {
  attentionGraph,
  type ConvolutionSpec,
  convolutionGraph,
  projectionGraph,
  projectionsGraph,
  type ResidualSpec,
  upsampleGraph,
} from './graphs';

/** What the layers of one network share. */
export class Workspace {
  /** Images on their way through the network. */
  readonly scratch: TensorPool;
  /** Partial sums, which live from frame to frame. */
  readonly caches: TensorPool;
  readonly rows: RowCopier;

  constructor(
    readonly backend: Backend,
    readonly bandBytes: number = defaultBandBytes,
  ) {
    this.scratch = new TensorPool(backend, 'activations');
    this.caches = new TensorPool(backend, 'caches');
    this.rows = new RowCopier(backend, this.scratch);
  }

  image(height: number, width: number, channels: number, dtype: Image['dtype'] = 'float32'): Image {
    return this.scratch.take([1, height, width, channels], dtype);
  }

  dispose(): void {
    this.scratch.dispose();
    this.caches.dispose();
  }
}

/** A convolution with its weights and, over time, what it must know of the past. One frame per step. */
export interface ConvolutionLayer {
  /**
   * Convolves `x` [1, H, W, inputs] into an image [1, H, W, filters].
   *
   * @param residual an image that is added, if need be through a 1×1 convolution
   * @param overwrite the result may take the place of `residual`
   */
  step(x: Image, residual?: Image, overwrite?: boolean): Promise<Image>;
  /** Starts a new clip. What is known of the past belongs to the workspace. */
  reset(): void;
}

/** Nearest ×2 with its convolution and the block's parameter-free shortcut. */
export interface UpsampleLayer {
  /**
   * @param x [1, H, W, channels]
   * @param blockInput the input of the block, [1, H, W, shortcut.inputs]
   * @param time 0 for the earlier and 1 for the later of the two frames that the input becomes
   * @returns [1, 2H, 2W, channels]
   */
  step(x: Image, blockInput: Image, time: 0 | 1): Promise<Image>;
}

const noResidual: ResidualSpec = { kind: 'none' };

/** A convolution by the runtime: what it knows of the past are partial sums. */
export class FrameConvolution implements ConvolutionLayer {
  /** Partial sums (P, Q) of each band; see `convolutionGraph`. */
  #sums: [Image, Image][] = [];

  constructor(
    readonly workspace: Workspace,
    readonly shape: Pick<ConvolutionSpec, 'inputs' | 'filters' | 'kernel' | 'taps' | 'norm'> & {
      readonly residual?: ResidualSpec;
    },
    readonly weights: Bindings,
  ) {}

  reset(): void {
    this.#sums = [];
  }

  /** With several bands the result takes the place of `residual`, since a band needs no other rows of it. */
  async step(x: Image, residual?: Image, overwrite = false): Promise<Image> {
    const { workspace, shape } = this;
    const { height, width } = extentOf(x);
    const rowBytes = 4 * width * Math.max(shape.inputs, shape.filters);
    const bands = bandsOf(height, rowBytes, workspace.bandBytes);
    const inPlace = overwrite && bands.length > 1 && residual?.dims[3] === shape.filters;
    const y = inPlace ? residual : workspace.image(height, width, shape.filters);
    for (const [index, band] of bands.entries()) {
      const whole = bands.length === 1;
      const margin = !whole && shape.kernel === 3;
      await (whole
        ? this.#run(index, margin, x, y, residual)
        : this.#runBand(index, band, margin, x, y, residual));
    }
    return y;
  }

  async #runBand(index: number, band: Band, margin: boolean, x: Image, y: Image, residual?: Image) {
    const { rows: copier, scratch } = this.workspace;
    const { start, rows } = band;
    const { width, channels: filters } = extentOf(y);
    const edge = margin ? 1 : 0;
    const input = copier.cut(x, start - edge, rows + 2 * edge);
    const side = residual && copier.cut(residual, start, rows);
    const output = scratch.take([1, rows, width, filters]);
    await this.#run(index, margin, input, output, side);
    scratch.give(input, ...(side ? [side] : []));
    copier.paste(output, y, start);
  }

  async #run(index: number, margin: boolean, x: Image, y: Image, residual?: Image) {
    const { workspace, shape, weights } = this;
    const { backend, caches } = workspace;
    const { inputs, filters, kernel, taps, norm } = shape;
    const graph = convolutionGraph({
      layout: backend.convLayout,
      inputs,
      filters,
      kernel,
      taps,
      norm,
      residual: shape.residual ?? noResidual,
      margin,
    });
    const bound = { ...weights, x, ...(residual && { residual }) };
    if (taps === 1) return backend.run(graph, bound, { y });
    // A run may not write what it reads: the next sums go into other tensors, and these become free.
    const [p, q] = this.#sums[index] ?? [caches.zero(y.dims), caches.zero(y.dims)];
    const [pNext, qNext] = [caches.take(y.dims), caches.take(y.dims)];
    await backend.run(graph, { ...bound, p, q }, { y, pNext, qNext });
    this.#sums[index] = [pNext, qNext];
    caches.give(p, q);
  }
}

/** norm → SiLU → conv → norm → SiLU → conv, plus the input, if need be through a 1×1 convolution. */
export class ResidualBlock {
  constructor(
    readonly workspace: Workspace,
    readonly first: ConvolutionLayer,
    readonly second: ConvolutionLayer,
  ) {}

  /** @param keep whether `x` is still needed; otherwise it returns to the pool or becomes the result */
  async step(x: Image, keep: boolean): Promise<Image> {
    const { scratch } = this.workspace;
    const hidden = await this.first.step(x);
    const y = await this.second.step(hidden, x, !keep);
    scratch.give(hidden);
    if (!keep && y !== x) scratch.give(x);
    return y;
  }
}

/** Self-attention over the pixels of one frame, single head. */
export class FrameAttention {
  constructor(
    readonly workspace: Workspace,
    readonly channels: number,
    readonly weights: { readonly inward: Bindings; readonly outward: Bindings },
  ) {}

  /** @param keep whether `x` is still needed; otherwise it returns to the pool */
  async step(x: Image, keep: boolean): Promise<Image> {
    const { workspace, channels, weights } = this;
    const { backend, scratch } = workspace;
    const { height, width } = extentOf(x);
    const pixels = height * width;
    const q = scratch.take([pixels, channels]);
    const k = scratch.take([pixels, channels]);
    const v = scratch.take([pixels, channels]);
    const attended = scratch.take([pixels, channels]);
    await backend.run(projectionsGraph({ channels }), { ...weights.inward, x }, { q, k, v });
    const graph = attentionGraph({ channels });
    // Scores may take two bands: at 1280×704 they then need no chunks.
    const chunks = bandsOf(pixels, 4 * pixels, 2 * workspace.bandBytes);
    for (const { start, rows } of chunks) {
      if (chunks.length === 1) {
        await backend.run(graph, { q, k, v }, { y: attended });
        continue;
      }
      const part = scratch.take([rows, channels]);
      const y = scratch.take([rows, channels]);
      backend.copy(q, start * channels, part, 0, rows * channels);
      await backend.run(graph, { q: part, k, v }, { y });
      backend.copy(y, 0, attended, start * channels, rows * channels);
      scratch.give(part, y);
    }
    const y = workspace.image(height, width, channels);
    const graphOut = projectionGraph({ channels, height, width });
    await backend.run(graphOut, { ...weights.outward, attended, x }, { y });
    scratch.give(q, k, v, attended);
    if (!keep) scratch.give(x);
    return y;
  }
}

/** An {@link UpsampleLayer} by the runtime. */
export class Upsample implements UpsampleLayer {
  constructor(
    readonly workspace: Workspace,
    readonly channels: number,
    readonly shortcut: { readonly inputs: number; readonly factorTime: 1 | 2 },
    readonly weights: Bindings,
  ) {}

  async step(x: Image, blockInput: Image, time: 0 | 1): Promise<Image> {
    const { workspace, channels, shortcut } = this;
    const { backend, scratch, rows: copier } = workspace;
    const { height, width } = extentOf(x);
    const y = workspace.image(2 * height, 2 * width, channels);
    const rowBytes = 4 * width * Math.max(4 * channels, shortcut.inputs);
    const bands = bandsOf(height, rowBytes, workspace.bandBytes);
    const margin = bands.length > 1;
    const graph = upsampleGraph({
      layout: backend.convLayout,
      channels,
      shortcut: {
        inputs: shortcut.inputs,
        picks: shortcutPicks(shortcut.inputs, channels, shortcut.factorTime, time),
      },
      margin,
    });
    for (const { start, rows } of bands) {
      if (!margin) {
        await backend.run(graph, { ...this.weights, x, shortcut: blockInput }, { y });
        continue;
      }
      const above = copier.cut(x, start - 1, rows + 1);
      const below = copier.cut(x, start, rows + 1);
      const side = copier.cut(blockInput, start, rows);
      const output = workspace.image(2 * rows, 2 * width, channels);
      const inputs = { ...this.weights, above, below, shortcut: side };
      await backend.run(graph, inputs, { y: output });
      scratch.give(above, below, side);
      copier.paste(output, y, 2 * start);
    }
    return y;
  }
}

/**
 * DupUp3D (README) for the four pixels of a 2×2 block: channels are repeated and unfolded in
 * the order (channel, time, row, column), so pixel (row, column) at `time` of output channel o is
 * input channel `o·inputs/channels + pick`.
 */
export function shortcutPicks(
  inputs: number,
  channels: number,
  factorTime: 1 | 2,
  time: 0 | 1,
): number[] {
  const repeats = (channels * factorTime * 4) / inputs;
  return [0, 1, 2, 3].map((phase) => Math.floor((time * 4 + phase) / repeats));
}
