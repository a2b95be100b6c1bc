import { at } from '../../contract';
import type { DeviceTensor } from '../tensor';
import type { ConvolutionShape, ConvolutionVariant } from './choice';
import { type Compute, type Dispatch, type Operand, rowView, type Span } from './compute';
import { channelStep, convolutionKernel, fittedVariant } from './convolution';
import { type MatrixSizes, matrixConvolution, matrixTilingOf } from './convolution-matrix';
import type { Kernel, Storage } from './kernel';
import { matrixStep } from './linear-matrix';
import { storageBytes } from './text';

/** A convolution of an image, or of the newest frames of a clip. Images are [..., H, W, C]. */
export interface ConvolutionRun {
  /** The newest frame first; as many as there are, up to the shape's frames. */
  readonly x: readonly Span[];
  /** `packedWeights`, or filters [N, C, height, width] as the shape says. */
  readonly weights: Span;
  /** [N] in f32, where the shape has one. */
  readonly bias?: DeviceTensor | undefined;
  /** [N] in f32, of PReLU. */
  readonly slope?: DeviceTensor | undefined;
  readonly side?: Span | undefined;
  readonly y: Span;
  readonly height: number;
  readonly width: number;
  /** Channels of x; a multiple of 4. */
  readonly inputs: number;
  readonly filters: number;
  readonly kernel: readonly [height: number, width: number];
  /** Zeros above and to the left; what is missing below and to the right is zero, too. */
  readonly pads: readonly [top: number, left: number];
  readonly stride?: number;
  /** Size of the result; of one of its phases where `scale` is 2. */
  readonly outputHeight: number;
  readonly outputWidth: number;
  /**
   * 2: each pixel becomes 2×2, and each of them has weights of its own, one after another. The padding is that
   * of the first; the neighbours of the others begin one position later unless the shape is `shuffled`.
   */
  readonly scale?: 1 | 2;
  /** Channels of `side`. */
  readonly sideInputs?: number;
  /** Of a `repeated` residual: output channel o of phase i is channel `o·sideInputs/filters + picks[i]`. */
  readonly picks?: readonly number[];
}

/**
 * The dispatches of a convolution: one, or several bands of rows where an image is larger than a binding may be.
 *
 * @throws RangeError for channels that are no multiple of 4
 */
export function convolutionDispatches(
  { limits }: Pick<Compute, 'limits'>,
  variant: ConvolutionVariant,
  shape: ConvolutionShape,
  run: ConvolutionRun,
): Dispatch[] {
  const { height, width, inputs, filters, outputHeight, outputWidth } = run;
  const { scale = 1, stride = 1, picks = [0, 0, 0, 0] } = run;
  const sideInputs = run.side ? (run.sideInputs ?? 0) : 0;
  const [kernelHeight, kernelWidth] = run.kernel;
  const [padTop, padLeft] = run.pads;
  if (inputs % 4 !== 0 || sideInputs % 4 !== 0) {
    throw new RangeError(`${inputs} and ${sideInputs} channels are no multiples of 4`);
  }
  const rowBytes = {
    x: width * inputs * storageBytes(shape.input),
    side: outputWidth * sideInputs * storageBytes(shape.side),
    y: outputWidth * scale * filters * storageBytes(shape.output),
  };
  /** Rows of the input that rows of the output depend on. */
  const inputRows = (start: number, rows: number) => {
    const first = Math.max(0, start * stride - padTop);
    const end = (start + rows - 1) * stride - padTop + kernelHeight + scale - 1;
    return { first, count: Math.min(height, end) - first };
  };
  const fits = (rows: number) =>
    Math.max(
      Math.min(height, (rows - 1) * stride + kernelHeight + scale - 1) * rowBytes.x,
      rows * rowBytes.side,
      rows * scale * rowBytes.y,
    ) <= limits.bindingBytes;
  let bandRows = outputHeight;
  while (bandRows > 1 && !fits(bandRows)) bandRows = Math.ceil(bandRows / 2);

  const taps = kernelHeight * kernelWidth;
  const centred = taps === 9 && kernelWidth === 3 && stride === 1 && padTop === 1 && padLeft === 1;
  const sizes = { centred, inputs, filters, sideInputs };
  const { kernel, step, tile } = kernelFor(variant, shape, sizes);
  const stepsOf = (channels: number) => Math.ceil(channels / step);
  const steps =
    run.x.length * taps * stepsOf(inputs) + (shape.residual === 'linear' ? stepsOf(sideInputs) : 0);
  const tapRows = taps * rowsOfTap(inputs);
  const dispatches: Dispatch[] = [];
  for (let start = 0; start < outputHeight; start += bandRows) {
    const rows = Math.min(bandRows, outputHeight - start);
    const source = inputRows(start, rows);
    const x = run.x.map((frame) => view(frame, source.first, source.count, rowBytes.x));
    const y = view(run.y, start * scale, rows * scale, rowBytes.y);
    const side = run.side && view(run.side, start, rows, rowBytes.side);
    const frames: Record<string, Operand> = {};
    for (let age = 0; age < shape.frames; age++) frames[`x${age}`] = (x[age] ?? at(x, 0)).operand;
    const pixelTiles = tile.across
      ? Math.ceil(outputWidth / tile.across) * Math.ceil((rows * tile.across) / tile.pixels)
      : Math.ceil((rows * outputWidth) / tile.pixels);
    const filterTiles = Math.ceil(filters / tile.filters);
    dispatches.push({
      kernel,
      operands: {
        ...frames,
        weights: run.weights,
        ...(run.bias && { bias: run.bias }),
        ...(run.slope && { slope: run.slope }),
        ...(side && { side: side.operand }),
        y: y.operand,
      },
      uniforms: {
        height,
        width,
        channels: inputs / 4,
        outputWidth,
        firstPixel: start * outputWidth,
        pixels: rows * outputWidth,
        filters,
        kernelHeight,
        kernelWidth,
        stride,
        padTop,
        padLeft,
        scale,
        frames: run.x.length,
        xFirst: at(x, 0).first,
        yFirst: y.first,
        sideFirst: side?.first ?? 0,
        sideChannels: sideInputs / 4,
        sideRow: shape.frames * tapRows,
        phaseRows: tapRows,
        picks: picks.reduce((word, pick, phase) => word | (pick << (8 * phase)), 0),
        steps,
        pixelTiles,
        filterTiles,
      },
      groups: scale * scale * pixelTiles * filterTiles,
      flops: 2 * scale * scale * rows * outputWidth * filters * steps * step,
    });
  }
  return dispatches;
}

/** The kernel of a variant for a shape with channels that fill its tiles. */
export function wholeKernel(variant: ConvolutionVariant, shape: ConvolutionShape): Kernel {
  return kernelFor(variant, shape, { centred: true, inputs: 256, filters: 256, sideInputs: 256 })
    .kernel;
}

/** What computes a convolution: the matrices of a variant, where it has some that can. */
function kernelFor(variant: ConvolutionVariant, shape: ConvolutionShape, sizes: MatrixSizes) {
  const matrix = matrixTilingOf(variant, shape, sizes);
  if (matrix) {
    const tile = { pixels: matrix.rows, filters: matrix.columns, across: matrix.window };
    return { kernel: matrixConvolution(matrix, shape), step: matrixStep, tile };
  }
  const fitted = fittedVariant(variant, sizes.filters);
  const tile = { ...fitted, across: undefined };
  return { kernel: convolutionKernel(fitted, shape), step: channelStep, tile };
}

/** Rows of weights for each tap of so many channels. */
export function rowsOfTap(channels: number): number {
  return Math.ceil(channels / channelStep) * channelStep;
}

/** Rows of an image as an operand, and the row of it in which row 0 of the image would lie. */
function view(
  of: Span,
  first: number,
  count: number,
  rowBytes: number,
): { operand: Operand; first: number } {
  const { operand, firstRow } = rowView(of, first, count, rowBytes);
  return { operand, first: firstRow - first };
}

/** How a tensor of numbers is stored. */
export function storageOf({ dtype }: DeviceTensor): Storage {
  if (dtype === 'float32') return 'f32';
  if (dtype === 'float16') return 'f16';
  throw new TypeError(`a ${dtype} tensor is no image`);
}
