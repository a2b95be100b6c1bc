/** The store on a disk, for tests that run in Node. */
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { checkRange } from '../../formats/source';
import { type StoreFolder, writeError } from '../folder';

/** A folder on disk in the role of the browser's. */
export function diskStore(root: string): StoreFolder {
  const full = (name: string) => path.join(root, name);
  const names = async (directories: boolean) => {
    const entries = await orNull(readdir(root, { withFileTypes: true }));
    return (entries ?? [])
      .filter((entry) => entry.isDirectory() === directories)
      .map(({ name }) => name)
      .sort();
  };
  const makeFolder = (name: string) => mkdir(path.dirname(full(name)), { recursive: true });
  return {
    name: path.basename(root),
    folder: (name) => diskStore(full(name)),
    list: () => names(false),
    folders: () => names(true),
    async open(name) {
      const facts = await orNull(stat(full(name)));
      if (!facts?.isFile()) return null;
      return {
        name,
        size: facts.size,
        async read(start, end) {
          checkRange(name, facts.size, start, end);
          const file = await open(full(name));
          try {
            const bytes = new Uint8Array(end - start);
            await file.read(bytes, 0, bytes.length, start);
            return bytes;
          } finally {
            await file.close();
          }
        },
      };
    },
    async file(name) {
      const bytes = await orNull(readFile(full(name)));
      return bytes && new File([bytes], path.basename(name));
    },
    readText: (name) => orNull(readFile(full(name), 'utf8')),
    async writeText(name, text) {
      await makeFolder(name);
      await writeFile(full(`${name}.part`), text);
      await rename(full(`${name}.part`), full(name));
    },
    async write(name) {
      await makeFolder(name);
      const file = await open(full(name), (await orNull(stat(full(name)))) ? 'r+' : 'w+');
      let size = (await file.stat()).size;
      return {
        get size() {
          return size;
        },
        async write(at, bytes) {
          try {
            await file.write(bytes, 0, bytes.length, at);
          } catch (thrown) {
            throw writeError(thrown);
          }
          size = Math.max(size, at + bytes.length);
        },
        async truncate(length) {
          await file.truncate(length);
          size = length;
        },
        flush: () => file.datasync(),
        close: () => file.close(),
      };
    },
    remove: (name) => rm(full(name), { force: true }),
    clear: () => rm(root, { recursive: true, force: true }),
  };
}

async function orNull<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise;
  } catch (thrown) {
    const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw thrown;
  }
}
