import { z } from 'zod';
import {
  KinoraError,
  type LoraEntry,
  licenceSchema,
  noises,
  siteStorage,
  toKinoraError,
} from '../contract';
import type { LoraBase, LoraFacts } from '../pipeline/installation';
import type { SafetensorsCheckpoint } from '../weights/formats/checkpoint';
import { triggerWords } from '../weights/lora-metadata';
import { removeFetched } from '../weights/store/fetched-file';
import { readRecord, type StoreFolder } from '../weights/store/folder';
import { opfsFolder } from '../weights/store/opfs';
import type { LibraryEnvironment } from './environment';

const entrySchema = z.object({
  name: z.string(),
  bytes: z.int().min(0),
  sha256: z.string(),
  source: z.string(),
  rank: z.int().min(0),
  base: z.string(),
  noise: z.enum(noises).optional(),
  triggerWords: z.array(z.string()),
  licence: licenceSchema,
  addedAt: z.string(),
});

/** Name of the folder of all LoRAs in the browser's private file system. */
export const loraFolder = 'loras';

/** File that declares a LoRA complete; it is written last. */
function recordName(name: string): string {
  return `${name}.json`;
}

/** The LoRAs that are complete, by name. */
export async function listLoras(folder: StoreFolder): Promise<readonly LoraEntry[]> {
  const entries: LoraEntry[] = [];
  for (const name of await folder.list()) {
    if (!name.endsWith('.safetensors')) continue;
    const entry = await readLora(folder, name);
    if (entry) entries.push(entry);
  }
  return entries;
}

/** One LoRA; null when it is not there, or not whole. */
export async function readLora(folder: StoreFolder, name: string): Promise<LoraEntry | null> {
  const entry = await readRecord(folder, recordName(name), entrySchema.parse);
  return entry && (await folder.open(name))?.size === entry.bytes ? entry : null;
}

/** Writes the record of an adapter, once its file is complete. */
export async function writeLora(folder: StoreFolder, entry: LoraEntry): Promise<void> {
  await folder.writeText(recordName(entry.name), JSON.stringify(entry));
}

/** Deletes a LoRA, whole or not; the record goes first. */
export async function removeLora(folder: StoreFolder, name: string): Promise<void> {
  await folder.remove(recordName(name));
  await removeFetched(folder, name);
}

/**
 * Checks a LoRA's header against each model in turn; the first that it fits is its base.
 *
 * @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE`
 */
export async function inspectLora(
  checkpoint: SafetensorsCheckpoint,
  name: string,
  models: readonly LoraBase[],
): Promise<LoraFacts> {
  let refusal: KinoraError | undefined;
  for (const { name: base, installation, configuration } of models) {
    try {
      const fit = await installation.inspectLora(checkpoint, name, configuration);
      return { base, ...fit, triggerWords: triggerWords(checkpoint.metadata) };
    } catch (thrown) {
      const error = toKinoraError(thrown);
      // The first model's word counts, but that it is for another base says more than anything else.
      const wrongBase = error.code === 'LORA_WRONG_BASE' && refusal?.code !== error.code;
      if (!refusal || wrongBase) refusal = error;
    }
  }
  throw refusal ?? new KinoraError('LORA_INVALID', `There is no model to compare ${name} with.`);
}

/** Web Lock of a LoRA while it is being added. */
export function loraLock(name: string): string {
  return `kinora:lora:${name}`;
}

/** Deletes what a page that was closed in the middle has left: files without a record. */
export async function sweepLoras(
  folder: StoreFolder,
  tryLock: LibraryEnvironment['tryLock'],
): Promise<void> {
  for (const name of await folder.list()) {
    if (!name.endsWith('.safetensors')) continue;
    // A tab that is adding the LoRA holds the lock.
    await tryLock(loraLock(name), async () => {
      if (!(await readLora(folder, name))) await removeLora(folder, name);
    });
  }
}

/** The address of a LoRA of the library, for others; undefined for one that was a file of this device. */
export async function loraSource(name: string): Promise<string | undefined> {
  const source = (await readLora(opfsFolder(loraFolder), name))?.source;
  return source?.includes('/') ? source : undefined;
}

/**
 * The file of a LoRA of the library, on the page or in a worker.
 *
 * @param name as in `loras[].path`
 * @throws KinoraError `LORA_MISSING`
 */
export async function openLora(name: string): Promise<File> {
  const entry = /[/\\]/.test(name) ? null : await readLora(opfsFolder(loraFolder), name);
  if (!entry) throw new KinoraError('LORA_MISSING', `There is no LoRA "${name}" in the library.`);
  const root = await siteStorage();
  const folder = await root.getDirectoryHandle(loraFolder);
  return (await folder.getFileHandle(name)).getFile();
}
