import type { StoreFolder, StoreWriter } from './folder';

/** The packs of a component that are being written. Each stays open until the end. */
export class PackWriters {
  readonly #open = new Map<string, StoreWriter>();
  readonly #dirty = new Set<StoreWriter>();

  constructor(readonly folder: StoreFolder) {}

  /** @throws KinoraError `STORAGE_FULL`, `MODEL_BUSY` */
  async write(pack: string, at: number, bytes: Uint8Array): Promise<void> {
    const writer = this.#open.get(pack) ?? (await this.folder.write(pack));
    this.#open.set(pack, writer);
    this.#dirty.add(writer);
    await writer.write(at, bytes);
  }

  /** Returns when everything written so far would survive a crash. */
  async flush(): Promise<void> {
    for (const writer of this.#dirty) await writer.flush();
    this.#dirty.clear();
  }

  async close(): Promise<void> {
    for (const writer of this.#open.values()) await writer.close();
    this.#open.clear();
    this.#dirty.clear();
  }
}
