import { KinoraError } from '../contract';
import type { ByteSource } from '../weights/formats/byte-source';
import { type ModelFolder, parseModelJson } from '../weights/formats/source';

/** Files, of the hub or picked, as a folder in which they lie under their own paths. */
export function folderOfFiles<F extends { readonly path: string }>(
  files: readonly F[],
  source: (file: F) => ByteSource | Promise<ByteSource>,
): ModelFolder {
  const find = (path: string) => files.find((file) => file.path === path);
  async function open(path: string): Promise<ByteSource> {
    const file = find(path);
    if (!file) throw new KinoraError('MODEL_FILE_MISSING', `${path} is missing.`);
    return source(file);
  }
  async function text(path: string): Promise<string> {
    const file = await open(path);
    return new TextDecoder().decode(await file.read(0, file.size));
  }
  return {
    open,
    text,
    json: async (path) => parseModelJson(path, await text(path)),
    exists: async (path) => find(path) !== undefined,
  };
}
