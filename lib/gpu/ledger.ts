import { type EngineCounters, KinoraError, type MemoryCount } from '../contract';
import type { SimdMemory } from './backend';
import type { KernelChoice } from './kernels';
import { type Category, categories, type ReadableTensor } from './tensor';

/**
 * Counts every byte on the device: live and peak per category, and how often memory was allocated and
 * how often data came back to the CPU.
 */
export class Ledger {
  readonly #live = new Map<Category, number>();
  readonly #peak = new Map<Category, number>();
  #total = 0;
  #totalPeak = 0;
  #allocations = 0;
  #readbacks = 0;
  #waits = 0;
  #largest = 0;

  /** Counts an allocation; the function that it returns counts its release, once. */
  take(category: Category, bytes: number): () => void {
    this.#allocations += 1;
    this.#largest = Math.max(this.#largest, bytes);
    this.#book(category, bytes);
    let live = true;
    return () => {
      if (!live) return;
      live = false;
      this.#book(category, -bytes);
    };
  }

  countReadback(): void {
    this.#readbacks += 1;
  }

  countWait(): void {
    this.#waits += 1;
  }

  get liveBytes(): number {
    return this.#total;
  }

  /** Highest sum over all categories since the last {@link resetPeaks}. */
  get peakBytes(): number {
    return this.#totalPeak;
  }

  /** The largest allocation in bytes. */
  get largest(): number {
    return this.#largest;
  }

  resetPeaks(): void {
    this.#totalPeak = this.#total;
    for (const category of categories) this.#peak.set(category, this.#live.get(category) ?? 0);
  }

  counters(): EngineCounters {
    const entries = categories.map((category): [string, MemoryCount] => [
      category,
      { live: this.#live.get(category) ?? 0, peak: this.#peak.get(category) ?? 0 },
    ]);
    return {
      categories: Object.fromEntries(entries),
      liveBytes: this.#total,
      peakBytes: this.#totalPeak,
      allocations: this.#allocations,
      readbacks: this.#readbacks,
      waits: this.#waits,
    };
  }

  #book(category: Category, bytes: number): void {
    const live = (this.#live.get(category) ?? 0) + bytes;
    this.#live.set(category, live);
    this.#peak.set(category, Math.max(live, this.#peak.get(category) ?? 0));
    this.#total += bytes;
    this.#totalPeak = Math.max(this.#total, this.#totalPeak);
  }
}

/** What every backend has in common: counters, and a limit of the memory that it may use. */
export abstract class Counted {
  protected readonly ledger = new Ledger();
  kernels: KernelChoice | null = null;
  readonly simd: SimdMemory | null = null;
  runtimeOnly = false;
  refused?: readonly string[];
  /** Most bytes that may be live when a tensor is created. */
  ceiling = Number.POSITIVE_INFINITY;
  /** See {@link Backend.mainMemory}. */
  mainMemory = Number.POSITIVE_INFINITY;
  /** Largest buffer of the device in bytes. */
  maxBufferBytes = Number.POSITIVE_INFINITY;

  /** @throws KinoraError `OUT_OF_MEMORY` for a buffer that is too large, alone or with all others */
  protected requireRoom(bytes: number): void {
    if (bytes > this.maxBufferBytes) {
      throw new KinoraError(
        'OUT_OF_MEMORY',
        `The GPU takes at most ${this.maxBufferBytes} bytes in one buffer; ${bytes} are needed.`,
      );
    }
    const needed = this.ledger.liveBytes + bytes;
    if (needed <= this.ceiling) return;
    throw new KinoraError(
      'OUT_OF_MEMORY',
      `${needed} bytes of GPU memory are needed at once; ${this.ceiling} may be used.`,
    );
  }

  /** Copies a tensor, as {@link Backend.stage} describes. */
  protected abstract bring(tensor: ReadableTensor): Promise<Float32Array<ArrayBuffer>>;

  /** See {@link Backend.stage}. */
  stage(tensor: ReadableTensor): Promise<Float32Array<ArrayBuffer>> {
    const data = this.bring(tensor);
    // It may fail before anyone waits for it.
    data.catch(() => undefined);
    return data;
  }

  /** See {@link Backend.collect}. */
  collect<T extends readonly unknown[]>(staged: readonly [...T]) {
    if (staged.length > 0) this.ledger.countWait();
    return Promise.all(staged);
  }

  /** See {@link Backend.read}. */
  async read(tensor: ReadableTensor): Promise<Float32Array<ArrayBuffer>> {
    const [data] = await this.collect([this.stage(tensor)]);
    return data;
  }

  counters(): EngineCounters {
    return this.ledger.counters();
  }

  /** Highest live bytes since the last {@link resetPeaks}. */
  get peakBytes(): number {
    return this.ledger.peakBytes;
  }

  /** Largest buffer that was allocated, in bytes. */
  get largestBuffer(): number {
    return this.ledger.largest;
  }

  resetPeaks(): void {
    this.ledger.resetPeaks();
  }
}
