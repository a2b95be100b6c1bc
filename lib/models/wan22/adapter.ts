import { type AdapterPart, adapterParts, type KinoraError, toKinoraError } from '../../contract';
import { type Checkpoint, type ModelFolder, openSafetensors, parseModelJson } from '../../weights';
import { openStoredComponent, type StoreFolder } from '../../weights/store';
import { checkLora, type Lora, parseLora } from '../layers/lora';
import type { TransformerConfig } from './config';
import { loraArchitecture } from './lora';

/** File beside a stored adapter with the metadata that its own file had. */
export const adapterMetadata = 'metadata.json';

/** A LoRA that comes with a model, for its profiles. */
export interface Wan22Adapter {
  /** `owner/name/path@revision` of an installed one or the name of its local file; null in a bundled model. */
  readonly source: string | null;
  /** Why it cannot be applied to this model; null where it can. */
  readonly misfit: KinoraError | null;
  /** @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE` */
  read(): Promise<Lora>;
}

/** The adapters that a model has, by their parts. */
export type Wan22Adapters = Readonly<Partial<Record<AdapterPart, Wan22Adapter>>>;

/** The adapters of a bundled model, each `adapter.safetensors` in the folder of its part. */
export function bundledAdapters(
  folder: ModelFolder,
  config: TransformerConfig,
): Promise<Wan22Adapters> {
  return adaptersOf(async (part) => {
    const file = `${part}/adapter.safetensors`;
    if (!(await folder.exists(file))) return null;
    return adapterOf(await openSafetensors(await folder.open(file)), null, file, config);
  });
}

/** The adapters of an installed model. */
export function storedAdapters(
  folder: StoreFolder,
  config: TransformerConfig,
): Promise<Wan22Adapters> {
  return adaptersOf(async (id) => {
    const part = folder.folder(id);
    if (!(await part.open('manifest.json'))) return null;
    const checkpoint = await openStoredComponent(part);
    const text = (await part.readText(adapterMetadata)) ?? '{}';
    const metadata = new Map(Object.entries(parseModelJson(adapterMetadata, text) as object));
    const source = checkpoint.stored.sources[0]?.name ?? '';
    return adapterOf({ ...checkpoint, metadata }, source, source, config);
  });
}

async function adaptersOf(
  open: (part: AdapterPart) => Promise<Wan22Adapter | null>,
): Promise<Wan22Adapters> {
  const found: Partial<Record<AdapterPart, Wan22Adapter>> = {};
  for (const part of adapterParts) {
    const adapter = await open(part);
    if (adapter) found[part] = adapter;
  }
  return found;
}

function adapterOf(
  checkpoint: Checkpoint & { readonly metadata: ReadonlyMap<string, string> },
  source: string | null,
  name: string,
  config: TransformerConfig,
): Wan22Adapter {
  return {
    source,
    misfit: misfitOf(() => checkLora(checkpoint, loraArchitecture(config), name)),
    read: () => parseLora(checkpoint, loraArchitecture(config), name),
  };
}

function misfitOf(check: () => unknown): KinoraError | null {
  try {
    check();
    return null;
  } catch (thrown) {
    return toKinoraError(thrown);
  }
}
