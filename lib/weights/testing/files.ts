/** Files for tests that run in Node. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { KinoraError } from '../../contract';
import { openSafetensors, type SafetensorsCheckpoint } from '../formats/checkpoint';
import { blobFile, type ModelFolder, parseModelJson, type WeightFile } from '../formats/source';

export { diskFolder } from '../../cli/disk-folder';

/** Folder of the reference data, with a slash at its end. */
export const goldens = fileURLToPath(new URL('../../models/wan22/goldens/', import.meta.url));

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

/** A tensor to be written. */
export interface TestTensor {
  readonly dtype?: string;
  readonly shape: readonly number[];
  readonly data: Float32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>;
}

/** A tensor of f32 zeros, or of given values. */
export function f32(shape: readonly number[], values?: readonly number[]): TestTensor {
  const count = shape.reduce((all, n) => all * n, 1);
  return { shape, data: values ? Float32Array.from(values) : new Float32Array(count) };
}

/** The bytes of a safetensors file. */
export function safetensorsBytes(
  tensors: Readonly<Record<string, TestTensor>>,
  metadata?: Readonly<Record<string, string>>,
): Uint8Array<ArrayBuffer> {
  let offset = 0;
  const header: Record<string, unknown> = metadata ? { __metadata__: metadata } : {};
  for (const [name, { dtype = 'F32', shape, data }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [offset, offset + data.byteLength] };
    offset += data.byteLength;
  }
  return safetensorsFrom(
    header,
    Object.values(tensors).map(({ data }) => data),
  );
}

/** The bytes of a safetensors file with any header, right or wrong. */
export function safetensorsFrom(
  header: unknown,
  data: readonly ArrayBufferView<ArrayBuffer>[],
): Uint8Array<ArrayBuffer> {
  const json = new TextEncoder().encode(
    typeof header === 'string' ? header : JSON.stringify(header),
  );
  const total = data.reduce((sum, view) => sum + view.byteLength, 8 + json.length);
  const bytes = new Uint8Array(total);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, 8);
  let at = 8 + json.length;
  for (const view of data) {
    bytes.set(new Uint8Array(view.buffer, view.byteOffset, view.byteLength), at);
    at += view.byteLength;
  }
  return bytes;
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
