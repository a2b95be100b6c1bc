import { type Parameters, parseParameters } from '../../lib/contract/request';
import { type FormValues, fromParameters } from './form-state';

/**
 * The form's values from a video that Kinora made, seed included, and its LoRAs, which a video
 * cannot bring along.
 *
 * @throws KinoraError `VIDEO_UNREADABLE`
 */
export async function readSettings(
  file: Blob,
): Promise<{ values: Partial<FormValues>; loras: Parameters['loras'] }> {
  // The MP4 reader is large and rarely wanted.
  const { readVideoMetadata } = await import('../../lib/video/metadata');
  const metadata = await readVideoMetadata(file);
  const { backend, model } = metadata;
  const values = { ...fromParameters(parseParameters(metadata)), backend, model };
  return { values, loras: metadata.loras };
}
