import { KinoraError, type LibrarySnapshot, type LoraEntry } from '../../contract';
import type { HubClient } from '../hub';
import type { ModelFolder } from '../source';
import type { LibraryEnvironment } from './environment';
import { fetchLora, type LoraSource, openLoraHeader } from './lora-download';
import { listLoras, removeLora } from './loras';

/** The LoRAs of this browser, and those that are on their way. */
export class LoraLibrary {
  #entries: readonly LoraEntry[] = [];
  readonly #downloads = new Map<string, { bytesDone: number; bytesTotal: number | null }>();

  /** @param onChange called after each change of what the getters give */
  constructor(
    readonly environment: LibraryEnvironment,
    readonly onChange: () => void,
  ) {}

  get entries(): readonly LoraEntry[] {
    return this.#entries;
  }

  get downloads(): LibrarySnapshot['loraDownloads'] {
    return [...this.#downloads].map(([name, bytes]) => ({ name, ...bytes }));
  }

  /** Reads what is on disk. */
  async load(): Promise<void> {
    this.#entries = await listLoras(this.environment.loras);
    this.onChange();
  }

  /**
   * @param models those that it may be made for
   * @throws KinoraError as `fetchLora`
   */
  async add(
    source: LoraSource,
    client: HubClient,
    models: readonly { readonly name: string; readonly configuration: ModelFolder }[],
  ): Promise<LoraEntry> {
    const { loras: folder, architecture, tryLock } = this.environment;
    let shown: string | undefined;
    try {
      return await fetchLora(source, {
        folder,
        client,
        tryLock,
        signal: new AbortController().signal,
        inspect: async (bytes, name) =>
          architecture.inspectLora(await openLoraHeader(bytes, name), name, models),
        onProgress: (name, bytesDone, bytesTotal) => {
          shown = name;
          this.#downloads.set(name, { bytesDone, bytesTotal });
          this.onChange();
        },
      });
    } finally {
      if (shown !== undefined) this.#downloads.delete(shown);
      await this.load();
    }
  }

  /** @throws KinoraError `LORA_MISSING` */
  async delete(name: string): Promise<void> {
    if (!this.#entries.some((lora) => lora.name === name)) {
      throw new KinoraError('LORA_MISSING', `There is no LoRA "${name}" in the library.`);
    }
    await removeLora(this.environment.loras, name);
    await this.load();
  }
}
