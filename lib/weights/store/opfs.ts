import { KinoraError, openSyncAccess, renameFile, siteStorage } from '../../contract';
import { blobFile, readError } from '../formats/source';
import { type StoreFolder, type StoreWriter, storageFull, writeError, writeWhole } from './folder';

/** Ending of a text file that is still being written. */
const partial = '.part';

/** Name of the folder of all models in the browser's private file system. */
export const modelFolder = 'models';

/** The folder of all models in the browser's private file system; a model is `.folder(id)`. */
export async function openModelStore(): Promise<StoreFolder> {
  return opfsFolder(modelFolder);
}

/**
 * A folder of the origin private file system.
 *
 * @param path from its root, such as `models`
 */
export function opfsFolder(path: string): StoreFolder {
  const parts = path.split('/');

  /** The folder of a path below this one and the file's own name. */
  async function locate(file: string, create: boolean) {
    const below = file.split('/');
    const name = below.pop() ?? '';
    const folder = await directory([...parts, ...below], create);
    return folder && { folder, name };
  }
  async function read(file: string): Promise<File | null> {
    const place = await locate(file, false);
    if (!place) return null;
    return nullIfAbsent(async () => (await place.folder.getFileHandle(place.name)).getFile());
  }
  async function remove(file: string): Promise<void> {
    const place = await locate(file, false);
    if (place) await nullIfAbsent(() => place.folder.removeEntry(place.name));
  }
  async function names(kind: FileSystemHandleKind): Promise<string[]> {
    const folder = await directory(parts, false);
    const all: string[] = [];
    if (!folder) return all;
    for await (const entry of folder.values()) if (entry.kind === kind) all.push(entry.name);
    return all.sort();
  }

  return {
    name: path,
    folder: (below) => opfsFolder(`${path}/${below}`),
    list: () => names('file'),
    folders: () => names('directory'),
    async open(file) {
      const blob = await read(file);
      return blob && blobFile(`${path}/${file}`, blob);
    },
    file: read,
    readText: async (file) => {
      try {
        return (await (await read(file))?.text()) ?? null;
      } catch {
        // It was replaced between opening and reading: what is there now is whole.
        const again = await read(file);
        return again
          ? again.text().catch((thrown) => Promise.reject(readError(`${path}/${file}`, thrown)))
          : null;
      }
    },
    writeText: (file, text) =>
      inTurn(`${path}/${file}`, async () => {
        const place = await locate(file, true);
        if (!place) throw new TypeError(`${path}/${file} has no folder`);
        await replaceText(place.folder, place.name, new TextEncoder().encode(text));
      }),
    async write(file) {
      const place = await locate(file, true);
      if (!place) throw new TypeError(`${path}/${file} has no folder`);
      return openWriter(await place.folder.getFileHandle(place.name, { create: true }));
    },
    remove,
    async clear() {
      const parent = await directory(parts.slice(0, -1), false);
      const name = parts.at(-1) ?? '';
      if (parent) await nullIfAbsent(() => parent.removeEntry(name, { recursive: true }));
    },
  };
}

/** Runs the work when no tab and no worker writes this file any more. */
async function inTurn(file: string, work: () => Promise<void>): Promise<void> {
  await navigator.locks.request(`kinora:write:${file}`, work);
}

/** Puts a text in the place of another. @throws KinoraError `STORAGE_FULL` */
async function replaceText(
  folder: FileSystemDirectoryHandle,
  name: string,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<void> {
  try {
    const draft = await folder.getFileHandle(name + partial, { create: true });
    await replaceContent(draft, bytes);
    if (await renameFile(folder, draft, name)) return;
    // Without a move a crash can cut the text; no reader takes a half of JSON for the whole.
    await replaceContent(await folder.getFileHandle(name, { create: true }), bytes);
    await folder.removeEntry(draft.name);
  } catch (thrown) {
    throw writeError(thrown);
  }
}

/** A folder by the names on its way; null when it is absent and not to be made. */
async function directory(
  names: readonly string[],
  create: boolean,
): Promise<FileSystemDirectoryHandle | null> {
  let folder = await siteStorage();
  for (const name of names) {
    const next = await nullIfAbsent(() => folder.getDirectoryHandle(name, { create }));
    if (!next) return null;
    folder = next;
  }
  return folder;
}

/** The result of the action; null when the file or folder is not there. */
async function nullIfAbsent<T>(action: () => Promise<T>): Promise<T | null> {
  try {
    return await action();
  } catch (thrown) {
    if (thrown instanceof DOMException && thrown.name === 'NotFoundError') return null;
    if (thrown instanceof DOMException && thrown.name === 'NoModificationAllowedError') {
      throw busy(thrown);
    }
    throw thrown;
  }
}

function busy(cause: unknown): KinoraError {
  return new KinoraError('MODEL_BUSY', undefined, { cause });
}

async function replaceContent(
  handle: FileSystemFileHandle,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<void> {
  if ('createWritable' in handle) {
    const stream = await handle.createWritable();
    await stream.write(bytes);
    await stream.close();
    return;
  }
  // Safari before 26 writes in workers only, and only like this.
  await writeWhole(await openWriter(handle), bytes);
}

async function openWriter(file: FileSystemFileHandle): Promise<StoreWriter> {
  const access = await openSyncAccess(file).catch((thrown: unknown) => {
    if (thrown instanceof DOMException && thrown.name === 'NoModificationAllowedError') {
      throw busy(thrown);
    }
    throw thrown;
  });
  /** Runs one step; a failure becomes an error of the store. */
  async function guarded(step: () => void): Promise<void> {
    try {
      step();
    } catch (thrown) {
      throw writeError(thrown);
    }
  }
  return {
    get size() {
      return access.getSize();
    },
    write: (at, bytes) =>
      guarded(() => {
        // The handle takes views of plain buffers only; what comes here never is shared.
        const written = access.write(bytes as Uint8Array<ArrayBuffer>, { at });
        if (written < bytes.length) throw storageFull();
      }),
    truncate: (size) => guarded(() => access.truncate(size)),
    flush: () => guarded(() => access.flush()),
    close: async () => access.close(),
  };
}

/**
 * Name of a model's Web Lock. A download, a conversion, a check or a deletion holds it exclusively; a run shares it.
 */
export function modelLock(id: string): string {
  return `kinora:model:${id}`;
}
