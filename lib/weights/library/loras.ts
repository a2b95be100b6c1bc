import { z } from 'zod';
import { KinoraError, type LoraEntry } from '../../contract';
import type { StoreFolder } from '../store/folder';
import { opfsFolder } from '../store/opfs';

const entrySchema = z.object({
  name: z.string(),
  bytes: z.int().min(0),
  sha256: z.string(),
  source: z.string(),
  rank: z.int().min(0),
  base: z.string(),
  triggerWords: z.array(z.string()),
  addedAt: z.string(),
});

/** Name of the folder of all LoRAs in the browser's private file system. */
export const loraFolder = 'loras';

/** File that declares a LoRA complete; it is written last. */
export function recordName(name: string): string {
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
  const text = await folder.readText(recordName(name));
  if (text === null) return null;
  try {
    const entry = entrySchema.parse(JSON.parse(text));
    return (await folder.open(name))?.size === entry.bytes ? entry : null;
  } catch {
    return null;
  }
}

export async function writeLora(folder: StoreFolder, entry: LoraEntry): Promise<void> {
  await folder.writeText(recordName(entry.name), JSON.stringify(entry));
}

/** Deletes a LoRA, whole or not; the record goes first. */
export async function removeLora(folder: StoreFolder, name: string): Promise<void> {
  await folder.remove(recordName(name));
  await folder.remove(partialName(name));
  await folder.remove(name);
}

/** Says what a file that is not whole yet belongs to. */
export function partialName(name: string): string {
  return `${name}.part.json`;
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
  const root = await navigator.storage.getDirectory();
  const folder = await root.getDirectoryHandle(loraFolder);
  return (await folder.getFileHandle(name)).getFile();
}
