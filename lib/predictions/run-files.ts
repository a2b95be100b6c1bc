import { KinoraError } from '../contract/errors';

/** Stand-in until the branch w-ckpt is merged, which has the real file. */
export interface RunFiles {
  read(name: string): Promise<File | null>;
  write(name: string, blob: Blob): Promise<void>;
  remove(name: string): Promise<void>;
}

export interface SavedRun {
  readonly id: string;
  readonly bytes: number;
  readonly lastModified: number;
  readonly latents: boolean;
}

async function root(): Promise<FileSystemDirectoryHandle> {
  return (await navigator.storage.getDirectory()).getDirectoryHandle('runs', { create: true });
}

export function openRunFiles(id: string): RunFiles {
  const folder = async () => (await root()).getDirectoryHandle(id, { create: true });
  return {
    async read(name) {
      const handle = await (await folder()).getFileHandle(name).catch(() => null);
      return handle?.getFile() ?? null;
    },
    async write(name, blob) {
      const handle = await (await folder()).getFileHandle(name, { create: true });
      await blob.stream().pipeTo(await handle.createWritable());
    },
    async remove(name) {
      await (await folder()).removeEntry(name);
    },
  };
}

export async function listRuns(): Promise<SavedRun[]> {
  const runs: SavedRun[] = [];
  for await (const [id, handle] of (await root()).entries()) {
    if (!(handle instanceof FileSystemDirectoryHandle)) throw new KinoraError('INTERNAL');
    let [bytes, lastModified, latents] = [0, 0, false];
    for await (const [name, file] of handle.entries()) {
      if (!(file instanceof FileSystemFileHandle)) continue;
      const stored = await file.getFile();
      bytes += stored.size;
      lastModified = Math.max(lastModified, stored.lastModified);
      latents ||= name.startsWith('clip-');
    }
    runs.push({ id, bytes, lastModified, latents });
  }
  return runs;
}

export async function removeRun(id: string): Promise<void> {
  await (await root()).removeEntry(id, { recursive: true }).catch(() => {});
}
