import { KinoraError } from '../../contract';
import { type GgufHeader, ggufMagic, readGgufHeader } from './gguf';
import { readSafetensorsHeader, type TensorEntry } from './safetensors';
import type { WeightFile } from './source';
import { readTorchHeader } from './torch';

/** The table of contents of a weight file, whatever its format. No weight has been read. */
export interface TensorFile {
  readonly file: WeightFile;
  readonly format: 'safetensors' | 'gguf' | 'torch';
  /** By the file's own names, dimensions slowest first. */
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  /** Texts of the header: `__metadata__`, or GGUF's text values such as `general.architecture`. */
  readonly metadata: ReadonlyMap<string, string>;
  /** Where the tensors begin: what comes before is read first. */
  readonly headerBytes: number;
  /** All values of a GGUF header, such as an embedded tokenizer; null in other formats. */
  readonly gguf: GgufHeader | null;
}

/** Other files that people take for weights, by their first bytes. */
const unknownFormats: readonly (readonly [start: string, what: string])[] = [
  ['\u0080\u0002', 'a PyTorch file of before 1.6; its safetensors or GGUF form is needed'],
  ['version https://git-lfs', 'a Git LFS pointer: the weights themselves were not fetched'],
  ['<', 'a web page'],
  ['ggjt', 'a GGML file of before GGUF'],
  ['tjgg', 'a GGML file of before GGUF'],
];

/**
 * Opens a file of weights by what it holds, not by its name.
 *
 * @throws KinoraError `MODEL_FILE_INVALID` for a damaged file or one of another format,
 * `MODEL_FILE_TRUNCATED` for a short one
 */
export async function openTensorFile(file: WeightFile): Promise<TensorFile> {
  const start = await file.read(0, Math.min(file.size, 32));
  const text = String.fromCharCode(...start);
  const view = new DataView(start.buffer, start.byteOffset, start.byteLength);
  if (start.length >= 4 && view.getUint32(0, true) === ggufMagic) {
    const gguf = await readGgufHeader(file);
    const texts = [...gguf.metadata].filter(
      (pair): pair is [string, string] => typeof pair[1] === 'string',
    );
    const { tensors, headerBytes } = gguf;
    return { file, format: 'gguf', tensors, metadata: new Map(texts), headerBytes, gguf };
  }
  if (text.startsWith('PK\u0003\u0004')) {
    const header = await readTorchHeader(file);
    return { file, format: 'torch', ...header, metadata: new Map(), gguf: null };
  }
  const unknown = unknownFormats.find(([beginning]) => text.startsWith(beginning));
  if (unknown) {
    throw new KinoraError('MODEL_FILE_INVALID', `${file.name} is ${unknown[1]}.`);
  }
  const header = await readSafetensorsHeader(file);
  return { file, format: 'safetensors', ...header, gguf: null };
}
