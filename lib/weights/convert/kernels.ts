import { blockSize } from './blocks';
import type { Decoder, ElementType } from './element-types';
import { wasm } from './kernels-module';

/** The target of blocks: whole arrays, or views into larger ones. */
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

/** An element type, and the kernel that decodes it; null for f32, which is as it is. */
export interface Codec extends ElementType {
  readonly decoder: Decoder | null;
}

/** The exports of `assembly/index.ts`. */
interface Exports extends Record<Decoder, (elements: number) => void> {
  readonly memory: WebAssembly.Memory;
  readonly chunkElements: WebAssembly.Global<'i32'>;
  readonly sums: WebAssembly.Global<'i32'>;
  readonly source: WebAssembly.Global<'i32'>;
  readonly floats: WebAssembly.Global<'i32'>;
  readonly values: WebAssembly.Global<'i32'>;
  readonly scales: WebAssembly.Global<'i32'>;
  quantise8(blocks: number): void;
  quantise4(blocks: number): void;
  copy8(blocks: number, factor: number): void;
  copy4(blocks: number, factor: number): void;
  multiply(elements: number, factor: number): void;
}

interface Kernels {
  readonly run: Exports;
  /** Elements that the module's memory holds at once: few enough for the first-level cache. */
  readonly chunkElements: number;
  /** Two little-endian f64: Σ error², Σ w². */
  readonly sums: DataView;
  readonly source: Uint8Array;
  readonly floats: Float32Array;
  readonly values: Uint8Array;
  readonly scales: Float32Array;
}

let instance: Kernels | undefined;

function kernels(): Kernels {
  if (instance) return instance;
  const bytes = Uint8Array.from(atob(wasm), (char) => char.charCodeAt(0));
  // 17 KB: small enough to be compiled synchronously, in a page as well.
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes));
  const run = exports as unknown as Exports;
  const { buffer } = run.memory;
  const chunkElements = run.chunkElements.value;
  instance = {
    run,
    chunkElements,
    sums: new DataView(buffer, run.sums.value, 16),
    source: new Uint8Array(buffer, run.source.value, 4 * chunkElements),
    floats: new Float32Array(buffer, run.floats.value, chunkElements),
    values: new Uint8Array(buffer, run.values.value, chunkElements),
    scales: new Float32Array(buffer, run.scales.value, chunkElements / blockSize),
  };
  return instance;
}

/**
 * Decodes elements to f32, each rounded at most once.
 *
 * @param bytes whole blocks of the type
 * @param out exactly as long as the elements
 */
export function writeFloats(bytes: Uint8Array, codec: Codec, out: Float32Array): void {
  const { chunkElements, floats } = kernels();
  for (let start = 0; start < out.length; start += chunkElements) {
    const count = Math.min(chunkElements, out.length - start);
    decode(bytes, codec, start, count);
    out.set(floats.subarray(0, count), start);
  }
}

/**
 * Quantises elements to blocks: 8 bits with scale max|w| / 127, or 4 bits with the best of three scales.
 *
 * @param bytes whole blocks of the type
 * @param factor multiplies every element
 * @throws TypeError when the elements or the target's lengths do not fit
 */
export function writeQuantised(
  bytes: Uint8Array,
  codec: Codec,
  bits: 8 | 4,
  target: BlockTarget,
  factor = 1,
): QuantisationError {
  const { run } = kernels();
  const elements = (bytes.length / codec.bytes) * codec.elements;
  return inChunks(elements, bits, target, (start, count) => {
    decode(bytes, codec, start, count);
    if (factor !== 1) run.multiply(count, factor);
    run[`quantise${bits}`](count / blockSize);
  });
}

/**
 * Rewrites GGML's Q8_0 (8 bits) or Q4_0 (4 bits) blocks: the same integers and scales in our layout.
 *
 * @param factor multiplies every scale
 * @throws TypeError when the target's lengths do not fit
 */
export function writeCopied(
  bytes: Uint8Array,
  bits: 8 | 4,
  target: BlockTarget,
  factor: number,
): QuantisationError {
  const { run, source } = kernels();
  const perBlock = 2 + (blockSize * bits) / 8; // an f16 scale before the integers
  return inChunks((bytes.length / perBlock) * blockSize, bits, target, (start, count) => {
    const [at, blocks] = [(start / blockSize) * perBlock, count / blockSize];
    source.set(bytes.subarray(at, at + blocks * perBlock));
    run[`copy${bits}`](blocks, factor);
  });
}

/** Brings elements of `bytes` to the module's floats. */
function decode(bytes: Uint8Array, codec: Codec, start: number, count: number): void {
  const { run, source, floats } = kernels();
  const at = (start / codec.elements) * codec.bytes;
  const part = bytes.subarray(at, at + (count / codec.elements) * codec.bytes);
  if (codec.decoder === null) {
    new Uint8Array(floats.buffer, floats.byteOffset, floats.byteLength).set(part);
  } else {
    source.set(part);
    run[codec.decoder](count);
  }
}

function inChunks(
  elements: number,
  bits: 8 | 4,
  target: BlockTarget,
  convert: (start: number, count: number) => void,
): QuantisationError {
  const { chunkElements, sums, values, scales } = kernels();
  checkTarget(elements, bits, target);
  sums.setFloat64(0, 0);
  sums.setFloat64(8, 0);
  for (let start = 0; start < elements; start += chunkElements) {
    const count = Math.min(chunkElements, elements - start);
    convert(start, count);
    target.values.set(values.subarray(0, (count * bits) / 8), (start * bits) / 8);
    target.scales.set(scales.subarray(0, count / blockSize), start / blockSize);
  }
  return { squaredError: sums.getFloat64(0, true), squaredNorm: sums.getFloat64(8, true) };
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
