/** Reads that wait together, of frames that come of one latent frame. */
const mostKept = 4;

/** Buffers of readbacks. They are kept for the next ones, and grow to the largest so far. */
export class StagingPool<T extends { readonly size: number; destroy(): unknown }> {
  #free: T[] = [];

  constructor(readonly create: (bytes: number) => T) {}

  take(bytes: number): T {
    const index = this.#free.findIndex(({ size }) => size >= bytes);
    // One that is too small gives way.
    const [kept] = this.#free.splice(Math.max(0, index), 1);
    if (kept && index >= 0) return kept;
    kept?.destroy();
    return this.create(bytes);
  }

  give(buffer: T): void {
    if (this.#free.length < mostKept) this.#free.push(buffer);
    else buffer.destroy();
  }

  clear(): void {
    for (const buffer of this.#free) buffer.destroy();
    this.#free = [];
  }
}
