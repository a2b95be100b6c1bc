import { KinoraError } from '../../contract';
import type { TensorEntry } from './safetensors';
import type { WeightFile } from './source';
import type { TensorFile } from './tensor-file';

/** Where the bytes of a tensor are. */
export interface TensorLocation {
  readonly file: WeightFile;
  readonly entry: TensorEntry;
}

/** A tensor found in one of a component's files. */
export interface LocatedTensor extends TensorLocation {
  /** Its name in the file, for messages: it may be known by another one here. */
  readonly storedName: string;
  /** One number by which every element is to be multiplied: fp8 weights are kept that way. */
  readonly scale?: TensorLocation;
}

/** Tensors by whatever name the holder knows them. */
export type LocatedTensors = ReadonlyMap<string, LocatedTensor>;

/** Names of the scale of `x.weight`, beside it: ComfyUI's older and newer one. */
const scaleEndings = ['.scale_weight', '.weight_scale'] as const;

/**
 * All tensors of a component's files, by the files' own names. The scale of an fp8 weight becomes part
 * of the weight and is listed no more.
 *
 * @throws KinoraError `MODEL_FILE_INVALID` when two files have a tensor of the same name, `TENSOR_SHAPE`
 * when a scale is more than one number
 */
export function locateTensors(files: readonly TensorFile[]): LocatedTensors {
  const located = new Map<string, LocatedTensor>();
  for (const { file, tensors } of files) {
    for (const [name, entry] of tensors) {
      const other = located.get(name);
      if (other) {
        const sentence = `${other.file.name} and ${file.name} both have the tensor ${name}.`;
        throw new KinoraError('MODEL_FILE_INVALID', sentence);
      }
      located.set(name, { file, entry, storedName: name });
    }
  }
  for (const [name, scale] of [...located]) {
    const ending = scaleEndings.find((end) => name.endsWith(end));
    if (!ending) continue;
    const weightName = `${name.slice(0, -ending.length)}.weight`;
    const weight = located.get(weightName);
    if (!weight) continue;
    const { shape } = scale.entry;
    if (shape.some((n) => n !== 1)) {
      const sentence = `${name} is [${shape}], but the scale of a weight has to be one number.`;
      throw new KinoraError('TENSOR_SHAPE', sentence);
    }
    located.set(weightName, { ...weight, scale: { file: scale.file, entry: scale.entry } });
    located.delete(name);
  }
  return located;
}
