import {
  bareAddress,
  groupPairs,
  KinoraError,
  type LibrarySnapshot,
  type LoraEntry,
} from '../contract';
import type { LoraBase } from '../pipeline/installation';
import { openLoraFile } from '../weights/lora-metadata';
import type { LibraryEnvironment } from './environment';
import { fetchLora, findOther, type LoraContext, type LoraSource } from './lora-download';
import { inspectLora, listLoras, removeLora, sweepLoras } from './loras';

/** One that is on its way. */
interface LoraDownload {
  readonly bytesDone: number;
  readonly bytesTotal: number;
  /** Ends it, and resolves when nothing is left of it. */
  readonly cancel: () => Promise<void>;
}

/** The LoRAs of this browser, and those that are on their way. */
export class LoraLibrary {
  #entries: readonly LoraEntry[] = [];
  readonly #downloads = new Map<string, LoraDownload>();

  /** @param onChange called after each change of what the getters give */
  constructor(
    readonly environment: LibraryEnvironment,
    readonly onChange: () => void,
  ) {}

  get entries(): readonly LoraEntry[] {
    return this.#entries;
  }

  get downloads(): LibrarySnapshot['loraDownloads'] {
    return [...this.#downloads].map(([name, { bytesDone, bytesTotal }]) => ({
      name,
      bytesDone,
      bytesTotal,
    }));
  }

  /** Deletes what closed tabs have left of unfinished LoRAs, and reads what is there. */
  async start(): Promise<void> {
    await sweepLoras(this.environment.loras, this.environment.tryLock);
    await this.load();
  }

  /** Reads what is on disk. */
  async load(): Promise<void> {
    this.#entries = await listLoras(this.environment.loras);
    this.onChange();
  }

  /**
   * Adds a LoRA, with the other file of a pair where its repository has that.
   *
   * @param models those that it may be made for
   * @throws KinoraError as `fetchLora`, and `CANCELLED` when it was deleted on its way; the first file of a pair stays
   */
  async add(
    source: LoraSource,
    clients: Pick<LoraContext, 'client' | 'lookup'>,
    models: readonly LoraBase[],
  ): Promise<LoraEntry> {
    const entry = await this.#add(source, clients, models);
    const other = await findOther(source, clients.lookup);
    if (other) await this.#add(other, clients, models);
    return entry;
  }

  async #add(
    source: LoraSource,
    clients: Pick<LoraContext, 'client' | 'lookup'>,
    models: readonly LoraBase[],
  ): Promise<LoraEntry> {
    const stop = new AbortController();
    let shown = 'address' in source ? bareAddress(source.address) : source.file.name;
    const show = (name: string, bytesDone: number, bytesTotal: number) => {
      this.#downloads.delete(shown);
      shown = name;
      this.#downloads.set(name, { bytesDone, bytesTotal, cancel });
      this.onChange();
    };
    const fetching = fetchLora(source, {
      environment: this.environment,
      ...clients,
      signal: stop.signal,
      inspect: async (bytes, name) =>
        inspectLora(await openLoraFile({ ...bytes, name }), name, models),
      onProgress: show,
    });
    async function cancel(): Promise<void> {
      stop.abort();
      // The caller that started the download gets its result.
      await fetching.catch(() => undefined);
    }
    // It can be cancelled before its name is known.
    show(shown, 0, 0);
    try {
      return await fetching;
    } catch (thrown) {
      if (!stop.signal.aborted) throw thrown;
      const sentence = `${shown} was not added: it was cancelled.`;
      throw new KinoraError('CANCELLED', sentence, { remedy: 'Add it again when you like.' });
    } finally {
      this.#downloads.delete(shown);
      await this.load();
    }
  }

  /** Deletes a LoRA, with the other file of a pair, or ends its download. @throws KinoraError `LORA_MISSING` */
  async delete(name: string): Promise<void> {
    const download = this.#downloads.get(name);
    if (download) return download.cancel();
    const groups = groupPairs(this.#entries, (lora) => lora.name);
    const group = groups.find((files) => files.some((lora) => lora.name === name));
    if (!group) throw new KinoraError('LORA_MISSING', `There is no LoRA "${name}" in the library.`);
    for (const lora of group) await removeLora(this.environment.loras, lora.name);
    await this.load();
  }
}
