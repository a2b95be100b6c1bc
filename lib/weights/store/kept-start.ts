import { z } from 'zod';
import type { ByteSource } from '../formats/source';
import { readRecord, type StoreFolder } from './folder';

/** More than any header has; what is read beyond it is not kept. */
const mostBytes = 128 * 2 ** 20;

const noteSchema = z.object({ identity: z.string(), size: z.int(), bytes: z.int().min(0) });

/** Whether a file of a component is the start of a source that is kept, or the note of it. */
export function isKeptStart(name: string): boolean {
  return /^start-\d+\.(json|bin)$/.test(name);
}

/** Names of the files in which the start of source `index` is kept. */
function keptFiles(index: number): { note: string; bytes: string } {
  return { note: `start-${index}.json`, bytes: `start-${index}.bin` };
}

/**
 * A source of which everything that was read from its start on is kept in a folder. So the header, which
 * has to be read before the installation begins, is fetched once, even if the page is closed between.
 *
 * @param folder the component's
 * @param index which of the component's sources it is
 */
export async function keepStart(
  folder: StoreFolder,
  index: number,
  source: ByteSource,
): Promise<ByteSource> {
  const files = keptFiles(index);
  let kept = await keptBytes(folder, index, source);
  let turn: Promise<unknown> = Promise.resolve();

  async function read(start: number, end: number, signal?: AbortSignal): Promise<Uint8Array> {
    if (start > kept || end > mostBytes) return source.read(start, end, signal);
    if (end > kept) await keep(await source.read(kept, end, signal));
    return readKept(start, end, signal);
  }
  async function keep(bytes: Uint8Array): Promise<void> {
    const writer = await folder.write(files.bytes);
    try {
      await writer.write(kept, bytes);
      await writer.flush();
    } finally {
      await writer.close();
    }
    kept += bytes.length;
    const { identity, size } = source;
    await folder.writeText(files.note, JSON.stringify({ identity, size, bytes: kept }));
  }
  async function readKept(start: number, end: number, signal?: AbortSignal) {
    const file = await folder.open(files.bytes);
    // Deleted meanwhile, by another tab perhaps: the source has it still.
    return file && file.size >= end ? file.read(start, end) : source.read(start, end, signal);
  }
  return {
    name: source.name,
    size: source.size,
    identity: source.identity,
    sha256: source.sha256,
    read(start, end, signal) {
      const result = turn.then(() => read(start, end, signal));
      // The next read begins however this one ends.
      turn = result.catch(() => undefined);
      return result;
    },
    async *stream(start, end, signal) {
      const from = Math.min(end, Math.max(start, kept));
      if (from > start) yield await readKept(start, from, signal);
      if (end > from) yield* source.stream(from, end, signal);
    },
  };
}

/** How many bytes of this very source are there. */
async function keptBytes(
  folder: StoreFolder,
  index: number,
  { identity, size }: ByteSource,
): Promise<number> {
  const files = keptFiles(index);
  const note = await readRecord(folder, files.note, noteSchema.parse);
  const file = await folder.open(files.bytes);
  const isSame = note?.identity === identity && note.size === size;
  return isSame && file && file.size >= note.bytes ? note.bytes : 0;
}
