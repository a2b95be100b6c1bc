import { type KinoraError, toKinoraError } from '../../contract';
import { type Checkpoint, type ModelFolder, openSafetensors, parseModelJson } from '../../weights';
import { openStoredComponent, type StoreFolder } from '../../weights/store';
import { checkLora, type Lora, parseLora } from '../layers/lora';
import type { TransformerConfig } from '../wan/config';
import { loraArchitecture } from './lora';

/** File beside a stored adapter with the metadata that its own file had. */
export const adapterMetadata = 'metadata.json';

/** Where a bundled model has its adapter. */
const bundledFile = 'adapter/adapter.safetensors';

/** The LoRA that comes with a model, for a profile of few steps. */
export interface Wan22Adapter {
  /** `owner/name/path@revision` of an installed one or the name of its local file; null in a bundled model. */
  readonly source: string | null;
  /** Why it cannot be applied to this model; null where it can. */
  readonly misfit: KinoraError | null;
  /** @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE` */
  read(): Promise<Lora>;
}

/** The adapter of a bundled model; null where it has none. */
export async function bundledAdapter(
  folder: ModelFolder,
  config: TransformerConfig,
): Promise<Wan22Adapter | null> {
  if (!(await folder.exists(bundledFile))) return null;
  return adapterOf(await openSafetensors(await folder.open(bundledFile)), null, config);
}

/** The adapter of an installed model; null where none is installed. */
export async function storedAdapter(
  folder: StoreFolder,
  config: TransformerConfig,
): Promise<Wan22Adapter | null> {
  const part = folder.folder('adapter');
  if (!(await part.open('manifest.json'))) return null;
  const checkpoint = await openStoredComponent(part);
  const text = (await part.readText(adapterMetadata)) ?? '{}';
  const metadata = new Map(Object.entries(parseModelJson(adapterMetadata, text) as object));
  const source = checkpoint.stored.sources[0]?.name ?? '';
  return adapterOf({ ...checkpoint, metadata }, source, config);
}

function adapterOf(
  checkpoint: Checkpoint & { readonly metadata: ReadonlyMap<string, string> },
  source: string | null,
  config: TransformerConfig,
): Wan22Adapter {
  const name = source ?? bundledFile;
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
