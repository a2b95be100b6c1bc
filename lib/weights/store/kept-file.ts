import { type StoreFolder, writeWhole } from './folder';

/** A small file that is kept with a component as it is. */
export interface KeptFile {
  /** Name directly in the component's folder. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Writes a whole file in the place of what was there. @throws KinoraError `STORAGE_FULL` */
export async function writeFile(
  folder: StoreFolder,
  path: string,
  bytes: Uint8Array,
): Promise<void> {
  await writeWhole(await folder.write(path), bytes);
}
