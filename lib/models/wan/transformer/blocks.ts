import type { Scope } from '../../../gpu';
import type { Residency } from '../../../pipeline/memory/memory-plan';
import type { Checkpoint } from '../../../weights';
import type { ReadOptions } from '../../layers/layer-data';
import { BufferSet, freshMemory } from '../../layers/linear';
import type { TransformerConfig } from '../config-schemas';
import { loraFactors } from './graphs';
import { type BlockWeights, placeBlock, readBlock } from './transformer-weights';

/**
 * The streamed blocks, in order. They are spread evenly, so that each is read while the resident blocks
 * before it compute.
 */
export function streamedBlocks(blocks: number, { residentBlocks }: Residency): number[] {
  const streamed = Math.max(0, blocks - residentBlocks);
  return Array.from({ length: streamed }, (_, i) => Math.floor(((i + 1) * blocks) / streamed) - 1);
}

/**
 * The blocks of the transformer in the order of their use, pass after pass: resident, or streamed through a few
 * sets of buffers while the blocks before them compute.
 */
export class BlockStore {
  readonly #resident = new Map<number, BlockWeights>();
  readonly #streamed: readonly number[];
  readonly #sets: readonly BufferSet[];
  /** Pending and complete loads, by position in the endless sequence of streamed blocks. */
  readonly #loads = new Map<number, Promise<BlockWeights>>();
  #position = 0;
  #tail: Promise<unknown> = Promise.resolve();
  readonly #stopped = new AbortController();

  private constructor(
    readonly scope: Scope,
    readonly checkpoint: Checkpoint,
    readonly config: TransformerConfig,
    readonly options: ReadOptions,
    residency: Residency,
  ) {
    this.#streamed = streamedBlocks(config.num_layers, residency);
    this.#sets = Array.from(
      { length: this.#streamed.length > 0 ? residency.bufferSets : 0 },
      () => new BufferSet(scope, this.#stopped.signal),
    );
  }

  /**
   * Loads the blocks that stay.
   *
   * @throws RangeError for fewer than two sets of buffers
   * @throws KinoraError as the checkpoint's reads do
   */
  static async load(
    scope: Scope,
    checkpoint: Checkpoint,
    config: TransformerConfig,
    options: ReadOptions,
    residency: Residency,
  ): Promise<BlockStore> {
    const store = new BlockStore(scope, checkpoint, config, options, residency);
    const streamed = new Set(store.#streamed);
    if (streamed.size > 0 && store.#sets.length < 2) {
      throw new RangeError('Streamed blocks need two sets of buffers at least.');
    }
    // A pass may have a block in another set than the first one had: nothing is allocated then.
    for (const { block, name, dtype, dims } of loraFactors(config, options)) {
      for (const set of streamed.has(block) ? store.#sets : []) {
        set.tensor(name, dtype, dims, 'lora');
      }
    }
    const placement = freshMemory(scope);
    for (let index = 0; index < config.num_layers; index++) {
      if (streamed.has(index)) continue;
      const data = await readBlock(checkpoint, config, index, options);
      const block = await placeBlock(placement, checkpoint, config, index, options, data);
      store.#resident.set(index, block);
    }
    return store;
  }

  get count(): number {
    return this.config.num_layers;
  }

  /**
   * The weights of a block. They are valid until {@link get} is called for the next block: all work that reads
   * them must be submitted before.
   */
  async get(index: number): Promise<BlockWeights> {
    const resident = this.#resident.get(index);
    if (resident) return resident;
    await this.#seek(index);
    // The block before has been submitted, so its set may be overwritten: commands keep their order.
    const position = this.#position;
    for (let next = position; next < position + this.#sets.length; next++) this.#start(next);
    const block = await this.#loads.get(position);
    if (!block) throw new RangeError(`there is no block ${index}`);
    this.#loads.delete(position);
    this.#position += 1;
    return block;
  }

  /**
   * Stops reading ahead. The memory belongs to the scope. No buffer is created or written any more: data that
   * is still being read is dropped. Resolves when no read is pending.
   */
  async stop(): Promise<void> {
    this.#stopped.abort(new DOMException('The blocks are not needed any more.', 'AbortError'));
    await this.#tail;
  }

  #indexAt(position: number): number {
    return this.#streamed[position % this.#streamed.length] ?? -1;
  }

  /** Advances to a block. After a pass that ended early another block would be the next one. */
  async #seek(index: number): Promise<void> {
    if (this.#indexAt(this.#position) === index) return;
    if (!this.#streamed.includes(index)) throw new RangeError(`there is no block ${index}`);
    await this.#tail;
    this.#loads.clear();
    while (this.#indexAt(this.#position) !== index) this.#position += 1;
  }

  /** Reads and writes one streamed block after the other. */
  #start(position: number): void {
    if (this.#loads.has(position)) return;
    const load = this.#tail.then(() => this.#load(position));
    this.#loads.set(position, load);
    // The caller that waits for the block gets the error; the next block is read all the same.
    this.#tail = load.catch(() => undefined);
  }

  async #load(position: number): Promise<BlockWeights> {
    const { checkpoint, config } = this;
    this.#stopped.signal.throwIfAborted();
    const index = this.#indexAt(position);
    const set = this.#sets[position % this.#sets.length];
    // Only the first pass counts for progress.
    const { onBytes, ...quiet } = this.options;
    const options = onBytes && position < this.#streamed.length ? this.options : quiet;
    const data = await readBlock(checkpoint, config, index, options);
    if (!set) throw new RangeError('Streamed blocks need sets of buffers.');
    return placeBlock(set.for(`blocks.${index}.`), checkpoint, config, index, options, data);
  }
}
