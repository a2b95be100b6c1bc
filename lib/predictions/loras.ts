import { KinoraError, type Parameters } from '../contract';

/** One adapter file of a prediction; its scale is in `parameters.loras` at the same index. */
export interface SourceLora {
  readonly name: string;
  /** Null while the request waits, for an adapter of the library: it is opened by its name when the run starts. */
  readonly file: Blob | null;
  /** Its address, for others. Absent for a file of this device. */
  readonly source?: string | undefined;
}

/**
 * Adds the scales of the parameters to the adapters.
 *
 * @throws KinoraError `REQUEST_INVALID` if the numbers of files and scales differ
 */
export function withScales<Lora extends object>(
  files: readonly Lora[],
  { loras }: Pick<Parameters, 'loras'>,
): (Lora & { readonly scale: number })[] {
  const scaled = files.flatMap((file, index) => {
    const scale = loras[index]?.scale;
    return scale === undefined ? [] : [{ ...file, scale }];
  });
  if (scaled.length === loras.length && files.length === loras.length) return scaled;
  const counts = `${loras.length} LoRAs, ${files.length} files`;
  throw new KinoraError('REQUEST_INVALID', `The LoRA files do not fit the request: ${counts}.`);
}
