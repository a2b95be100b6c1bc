/** Files for tests that run in Node. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { KinoraError } from '../../contract';
import { openSafetensors, type SafetensorsCheckpoint } from '../formats/checkpoint';
import { blobFile, type ModelFolder, parseModelJson, type WeightFile } from '../formats/source';
import { safetensorsBytes, type TestTensor } from './bytes';

export { diskFolder } from '../../cli/disk-folder';
export { f32, safetensorsBytes, safetensorsFrom, type TestTensor } from './bytes';

/** Folder of the reference data, with a slash at its end. */
export const goldens = fileURLToPath(
  new URL('../../models/wan/goldens/tiny-wan22-ti2v/', import.meta.url),
);

/** A small file of `torch.save`: `lib/finishing/goldens`. */
export const compactFile = fileURLToPath(
  new URL('../../finishing/goldens/compact.pth', import.meta.url),
);

/** Folder of the manifests and dimensions of the listed models, with a slash at its end. */
export const publicModels = fileURLToPath(new URL('../../../public/models/', import.meta.url));

/** A file on disk; read whole, the goldens are small. */
export async function diskFile(path: string): Promise<WeightFile> {
  return blobFile(path, new Blob([await readFile(path)]));
}

/** Opens a safetensors file of the goldens. */
export async function openGolden(path: string): Promise<SafetensorsCheckpoint> {
  return openSafetensors(await diskFile(goldens + path));
}

/** A folder in which some files of another one are replaced, or missing where null. */
export function patchedFolder(
  folder: ModelFolder,
  patches: Readonly<Record<string, string | Uint8Array<ArrayBuffer> | null>>,
): ModelFolder {
  function patch(path: string): Blob | undefined {
    const content = patches[path];
    if (content === null) throw new KinoraError('MODEL_FILE_MISSING', `${path} is missing.`);
    return content === undefined ? undefined : new Blob([content]);
  }
  const text = async (path: string) => patch(path)?.text() ?? folder.text(path);
  return {
    async open(path) {
      const blob = patch(path);
      return blob ? blobFile(path, blob) : folder.open(path);
    },
    text,
    json: async (path) => parseModelJson(path, await text(path)),
    exists: async (path) => (path in patches ? patches[path] !== null : folder.exists(path)),
  };
}

/** A checkpoint of tensors that never were on disk. */
export async function checkpointFrom(
  tensors: Readonly<Record<string, TestTensor>>,
  metadata?: Readonly<Record<string, string>>,
): Promise<SafetensorsCheckpoint> {
  return openSafetensors(
    blobFile('test.safetensors', new Blob([safetensorsBytes(tensors, metadata)])),
  );
}
