import { KinoraError, type ModelManifest, toKinoraError } from '../../contract';
import { checkPath, folderFrom, type ModelFolder, type WeightFile } from '../formats/source';

/**
 * A folder of the store: in the browser's private file system, or on disk in tests. Paths may have `/`
 * between their parts; folders come into being with the first file that is written into them.
 */
export interface StoreFolder {
  /** For messages. */
  readonly name: string;
  folder(path: string): StoreFolder;
  /** Names of the files directly in it; none when it does not exist. */
  list(): Promise<string[]>;
  /** Names of the folders directly in it. */
  folders(): Promise<string[]>;
  /** Opens a file for reading as it is now; null when there is none. */
  open(path: string): Promise<WeightFile | null>;
  /** A file as the browser hands it out; null when there is none. */
  file(path: string): Promise<File | null>;
  /** A whole text file; null when there is none. */
  readText(path: string): Promise<string | null>;
  /** Replaces a text file, wholly or not at all. @throws KinoraError `STORAGE_FULL` */
  writeText(path: string, text: string): Promise<void>;
  /**
   * Opens a file for writing and makes it if need be. In the browser only one may have it open, and
   * only in a dedicated worker.
   *
   * @throws KinoraError `MODEL_BUSY` when another tab has it open
   */
  write(path: string): Promise<StoreWriter>;
  /** Deletes a file; deleting nothing is fine. */
  remove(path: string): Promise<void>;
  /** Deletes the folder and everything in it; deleting nothing is fine. */
  clear(): Promise<void>;
}

/** A file that is being written, at any place. */
export interface StoreWriter {
  /** Its size in bytes now. */
  readonly size: number;
  /** @throws KinoraError `STORAGE_FULL` */
  write(at: number, bytes: Uint8Array): Promise<void>;
  truncate(size: number): Promise<void>;
  /** Returns when everything written so far would survive a crash. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Replaces the content of a file, and closes it. */
export async function writeWhole(writer: StoreWriter, bytes: Uint8Array): Promise<void> {
  try {
    await writer.truncate(0);
    await writer.write(0, bytes);
    await writer.flush();
  } finally {
    await writer.close();
  }
}

/** Turns what a failed write threw into a KinoraError; a full disk becomes `STORAGE_FULL`. */
export function writeError(thrown: unknown): KinoraError {
  const error = toKinoraError(thrown);
  const full =
    error.code === 'STORAGE_FULL' ||
    (thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOSPC');
  return full ? storageFull(thrown) : error;
}

/** The error for a store that is full. */
export function storageFull(cause?: unknown): KinoraError {
  return new KinoraError('STORAGE_FULL', 'The storage is full: the model does not fit.', {
    cause,
    remedy: 'Free disk space or delete models, then resume: what is there is kept.',
  });
}

/**
 * The content of a JSON file; null where there is none, where it is damaged, and where another version of Kinora wrote
 * it in another form.
 *
 * @param parse throws for what is not of the form
 */
export async function readRecord<T>(
  folder: StoreFolder,
  path: string,
  parse: (json: unknown) => T,
): Promise<T | null> {
  const text = await folder.readText(path);
  try {
    return text === null ? null : parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** A folder of the store in the role of a model folder: the configuration files. */
export function modelFolderOf(folder: StoreFolder): ModelFolder {
  return folderFrom(
    async (path) => {
      const file = await folder.open(checkPath(path));
      if (file) return file;
      throw new KinoraError('MODEL_FILE_MISSING', `${folder.name}/${path} is missing.`);
    },
    async (path) => (await folder.open(checkPath(path))) !== null,
  );
}

/** A small file that is kept with a component as it is. */
export interface KeptFile {
  /** Name directly in the component's folder. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

/**
 * The folder of a model. A component that its manifest keeps with another model lies in that model's folder: both
 * read the same files.
 *
 * @param models the folder of all models
 */
export function storeOfModel(
  models: StoreFolder,
  { id, components }: Pick<ModelManifest, 'id' | 'components'>,
): StoreFolder {
  const own = models.folder(id);
  const places = new Map(components.map((component) => [component.id, component.keptWith]));
  const folder = (path: string) => {
    const other = places.get(path);
    return other === undefined ? own.folder(path) : models.folder(other).folder(path);
  };
  return { ...own, folder };
}
