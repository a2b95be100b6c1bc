import { open, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { KinoraError } from '../contract';
import { checkPath, checkRange, type ModelFolder, parseModelJson, truncated } from '../weights';

/** A model folder on this machine's disk; files are read by ranges, never whole. */
export function diskFolder(root: string): ModelFolder {
  const full = (name: string) => path.join(root, checkPath(name));
  const missing = (name: string, cause: unknown) =>
    new KinoraError('MODEL_FILE_MISSING', `${name} is missing.`, { cause });
  const text = async (name: string) => {
    try {
      return await readFile(full(name), 'utf8');
    } catch (cause) {
      throw missing(name, cause);
    }
  };
  return {
    async open(name) {
      const facts = await stat(full(name)).catch((cause) => {
        throw missing(name, cause);
      });
      return {
        name,
        size: facts.size,
        async read(start, end) {
          checkRange(name, facts.size, start, end);
          const bytes = new Uint8Array(end - start);
          const file = await open(full(name));
          try {
            for (let done = 0; done < bytes.length; ) {
              const { bytesRead } = await file.read(bytes, done, bytes.length - done, start + done);
              if (bytesRead === 0) throw truncated(name, end, start + done);
              done += bytesRead;
            }
          } finally {
            await file.close();
          }
          return bytes;
        },
      };
    },
    text,
    json: async (name) => parseModelJson(name, await text(name)),
    exists: (name) =>
      stat(full(name)).then(
        () => true,
        () => false,
      ),
  };
}
