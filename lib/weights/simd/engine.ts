import { blockSize } from '../blocks';
import { assemble } from './assembler';
import { copy4, copy8 } from './copy';
import { sumsAddress } from './idioms';
import { quantise4, quantise8 } from './quantise';

/** Where blocks are written: whole arrays, or views into larger ones. */
export interface BlockTarget {
  /** 32·bits/8 bytes per block. */
  readonly values: Uint8Array;
  /** One per block. */
  readonly scales: Float32Array;
}

/** Sums over elements; the relative RMS error of any number of parts is √(Σ error / Σ norm). */
export interface QuantisationError {
  /** Σ (w − ŵ)² */
  readonly squaredError: number;
  /** Σ w²; not finite when an element is NaN or infinite. */
  readonly squaredNorm: number;
}

/** Weights that go through the module's memory at once: few enough for the first-level cache. */
const chunkElements = 4096;
const chunkBlocks = chunkElements / blockSize;

// The module's memory: the sums, then source, values and scales of one chunk.
const sourceAddress = 1024;
const sourceBytes = 4 * chunkElements;
const valuesAddress = sourceAddress + sourceBytes;
const scalesAddress = valuesAddress + chunkElements;

/** Takes addresses of source, values and scales, and the number of blocks. */
type Quantise = (source: number, values: number, scales: number, blocks: number) => void;
/** As {@link Quantise}, and a factor for the scales. */
type Copy = (...args: [...Parameters<Quantise>, factor: number]) => void;

interface Kernels {
  readonly quantise: Readonly<Record<8 | 4, Quantise>>;
  readonly copy: Readonly<Record<8 | 4, Copy>>;
  readonly sums: Float64Array;
  readonly floats: Float32Array;
  readonly bytes: Uint8Array;
  readonly values: Uint8Array;
  readonly scales: Float32Array;
}

let instance: Kernels | undefined;

function kernels(): Kernels {
  if (instance) return instance;
  // A page of 64 KiB holds everything, and a module this small may be compiled synchronously anywhere.
  const module = new WebAssembly.Module(assemble([quantise8, quantise4, copy8, copy4], 1));
  const { exports } = new WebAssembly.Instance(module);
  const { buffer } = exports.memory as WebAssembly.Memory;
  instance = {
    quantise: { 8: exports.quantise8 as Quantise, 4: exports.quantise4 as Quantise },
    copy: { 8: exports.copy8 as Copy, 4: exports.copy4 as Copy },
    sums: new Float64Array(buffer, sumsAddress, 2),
    floats: new Float32Array(buffer, sourceAddress, chunkElements),
    bytes: new Uint8Array(buffer, sourceAddress, sourceBytes),
    values: new Uint8Array(buffer, valuesAddress, chunkElements),
    scales: new Float32Array(buffer, scalesAddress, chunkBlocks),
  };
  return instance;
}

/**
 * Quantises floats to blocks: 8 bits with scale max|w| / 127, or 4 bits with the best of three scales.
 *
 * @param elements a multiple of 32
 * @param fill writes the elements from `start` on, as many as the array holds: at most 4,096
 * @throws TypeError when `elements` or the target's lengths do not fit
 */
export function writeQuantised(
  elements: number,
  bits: 8 | 4,
  target: BlockTarget,
  fill: (floats: Float32Array, start: number) => void,
): QuantisationError {
  const { quantise, floats } = kernels();
  return inChunks(elements, bits, target, (start, count) => {
    fill(count === chunkElements ? floats : floats.subarray(0, count), start);
    quantise[bits](sourceAddress, valuesAddress, scalesAddress, count / blockSize);
  });
}

/**
 * Rewrites GGML's Q8_0 (8 bits) or Q4_0 (4 bits) blocks: the same integers and scales in our layout.
 *
 * @param factor multiplies every scale
 * @throws TypeError when the target's lengths do not fit
 */
export function writeCopied(
  source: Uint8Array,
  bits: 8 | 4,
  target: BlockTarget,
  factor: number,
): QuantisationError {
  const { copy, bytes } = kernels();
  const perBlock = 2 + (blockSize * bits) / 8; // an f16 scale before the integers
  const elements = (source.length / perBlock) * blockSize;
  return inChunks(elements, bits, target, (start, count) => {
    const at = (start / blockSize) * perBlock;
    const blocks = count / blockSize;
    bytes.set(source.subarray(at, at + blocks * perBlock));
    copy[bits](sourceAddress, valuesAddress, scalesAddress, blocks, factor);
  });
}

function inChunks(
  elements: number,
  bits: 8 | 4,
  target: BlockTarget,
  convert: (start: number, count: number) => void,
): QuantisationError {
  const { sums, values, scales } = kernels();
  checkTarget(elements, bits, target);
  sums.fill(0);
  for (let start = 0; start < elements; start += chunkElements) {
    const count = Math.min(chunkElements, elements - start);
    convert(start, count);
    target.values.set(values.subarray(0, (count * bits) / 8), (start * bits) / 8);
    target.scales.set(scales.subarray(0, count / blockSize), start / blockSize);
  }
  const [squaredError = 0, squaredNorm = 0] = sums;
  return { squaredError, squaredNorm };
}

function checkTarget(elements: number, bits: 8 | 4, { values, scales }: BlockTarget): void {
  if (elements % blockSize !== 0) {
    throw new TypeError(`${elements} elements are no whole blocks of ${blockSize}.`);
  }
  if (values.length !== (elements * bits) / 8 || scales.length !== elements / blockSize) {
    throw new TypeError(
      `The target has ${values.length} bytes and ${scales.length} scales, ` +
        `which do not fit ${elements} elements of ${bits} bits.`,
    );
  }
}
