import { parseParameters } from '../../lib/contract/request';
import { type FormValues, fromParameters } from './form-state';

/**
 * The form's values from a video that Kinora made, seed included, and the names of the LoRAs that a
 * video cannot bring along.
 *
 * @throws KinoraError `VIDEO_UNREADABLE`
 */
export async function readSettings(
  file: Blob,
): Promise<{ values: Partial<FormValues>; missing: string[] }> {
  // The MP4 reader is large and rarely wanted.
  const { readVideoMetadata } = await import('../../lib/video/metadata');
  const metadata = await readVideoMetadata(file);
  const { backend, model } = metadata;
  const values = { ...fromParameters(parseParameters(metadata)), backend, model };
  return { values, missing: metadata.loras.map(({ path }) => path) };
}
