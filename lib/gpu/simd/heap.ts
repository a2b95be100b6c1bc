import { mostPages } from '../../wasm/assembler';
import { cannotHold } from '../faults';
import type { Category } from '../tensor';
import { groupSize } from './kernels';
import { controlBytes, mayShare } from './threads';

const pageBytes = 65_536;
/** Memory grows by a quarter, and so many pages at least. */
const leastGrowth = 256;

/** Where something lies in a heap, and how long it is, in bytes. */
export interface Block {
  readonly at: number;
  readonly bytes: number;
  /** Blocks of one kind serve instead of each other. */
  readonly kind: string;
}

/** The memory of kernels in WebAssembly: blocks of few different sizes, which are used again. */
export class SimdHeap {
  readonly isShared = mayShare();
  readonly memory = new WebAssembly.Memory({
    initial: 1,
    maximum: mostPages,
    shared: this.isShared,
  });
  /** What is free, by kind. Its content is what its last user left. */
  readonly #free = new Map<string, Block[]>();
  #end = controlBytes;

  /** For a group of columns. */
  readonly zeros: Block;
  readonly ones: Block;

  /** @param take accounts for bytes before they are taken, and throws where there is no room */
  constructor(readonly take: (category: Category, bytes: number) => void) {
    this.zeros = this.put(new Float32Array(groupSize));
    this.ones = this.put(new Float32Array(groupSize).fill(1));
  }

  /** The memory as numbers; it is another array when memory has grown. */
  get floats(): Float32Array {
    return new Float32Array(this.memory.buffer);
  }

  /**
   * A block, which starts at a multiple of 64 bytes. It is zero, or one of its kind that was given back.
   *
   * @throws KinoraError `OUT_OF_MEMORY`
   */
  allocate(bytes: number, kind = `${bytes}`, category: Category = 'activations'): Block {
    const free = this.#free.get(kind)?.pop();
    if (free) return free;
    const block = { at: this.#end, bytes, kind };
    this.take(category, bytes);
    const end = this.#end + 64 * Math.ceil(bytes / 64);
    const missing = Math.ceil(end / pageBytes) - this.memory.buffer.byteLength / pageBytes;
    if (missing > 0) this.#grow(missing);
    this.#end = end;
    return block;
  }

  /** A block with this content. */
  put(data: Float32Array, category: Category = 'weights'): Block {
    const bytes = 4 * data.length;
    const block = this.allocate(bytes, `${category} ${bytes}`, category);
    this.floats.set(data, block.at / 4);
    return block;
  }

  release(block: Block): void {
    const free = this.#free.get(block.kind) ?? [];
    free.push(block);
    this.#free.set(block.kind, free);
  }

  #grow(missing: number): void {
    const pages = this.memory.buffer.byteLength / pageBytes;
    const usual = Math.max(missing, leastGrowth, Math.ceil(pages / 4));
    try {
      this.memory.grow(Math.min(usual, Math.max(missing, mostPages - pages)));
    } catch (cause) {
      throw cannotHold('what is computed', cause);
    }
  }
}
