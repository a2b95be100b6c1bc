import { KinoraError } from '../../../contract';

/**
 * Refuses numbers that cannot be shown.
 *
 * @param what the subject of the sentence, such as `The latent of the image`
 * @throws KinoraError `LATENTS_NOT_FINITE`
 */
export function requireFinite(values: Float32Array, what: string): void {
  if (values.every(Number.isFinite)) return;
  throw new KinoraError('LATENTS_NOT_FINITE', `${what} has invalid numbers (NaN or infinity).`);
}
