import { KinoraError } from '../../../lib/contract';
import { ApiError, type Submission } from '../../../lib/contract/v3';
import { parseAddress } from '../../../lib/weights/hub/address';
import { GuardError } from '../../guard/errors';
import { shortened } from '../../http/input';
import type { JobLora } from '../../store/schema';
import { invalidField } from '../requests';
import { linkedUpload } from '../uploads/rows';
import type { IntakeContext } from './index';

/** Marks an upload that is not there yet: looked up again before a worker gets the job. */
const notFound = '';

/**
 * What a path of an adapter means: the name of an uploaded file (no slash, ends in `.safetensors`), the
 * address of an upload, a hub repository or file, or a link.
 *
 * @throws ApiError `INVALID_PARAMETER` naming the field
 */
export async function findLora(
  { config, guard, links, rows }: IntakeContext,
  owner: string,
  requested: Submission['loras'][number],
  index: number,
): Promise<JobLora> {
  const field = `loras.${index}.path`;
  const { scale } = requested;
  const path = requested.path.trim();
  if (isUploadName(path)) {
    const upload = await rows.newest(owner, path.normalize('NFC'));
    return { path, scale, from: 'upload', uploadId: upload?.id ?? notFound };
  }
  const upload = await linkedUpload({ links, rows }, path, owner);
  if (upload !== undefined) {
    if (!upload?.filename.toLowerCase().endsWith('.safetensors')) {
      throw invalidField(field, `${field} is not an upload of a LoRA of yours, or has expired.`);
    }
    // Its bytes may still be arriving: then it is looked up again by its name.
    const uploadId = upload.blobKey === null ? notFound : upload.id;
    return { path: upload.filename, scale, from: 'upload', uploadId };
  }
  try {
    const address = parseAddress(path, config.KINORA_HUB);
    const isLink = /^https?:/i.test(path);
    if (address.kind === 'link' || (isLink && address.revision !== 'main')) {
      // Workers fetch the main revision only; any other comes through the relay.
      const url = address.kind === 'link' ? address.url : path.replace('/blob/', '/resolve/');
      return { path, scale, from: 'link', url: guard.check(url).href };
    }
    const file = address.kind === 'file' ? address.path : null;
    if (file !== null && !file.toLowerCase().endsWith('.safetensors')) {
      throw invalidField(field, `${field} must name a .safetensors file.`);
    }
    return { path, scale, from: 'hub', repository: address.repository, file };
  } catch (thrown) {
    if (thrown instanceof ApiError) throw thrown;
    if (!(thrown instanceof KinoraError || thrown instanceof GuardError)) throw thrown;
    throw invalidField(field, `${field}: ${shortened(thrown.message)}`, { cause: thrown });
  }
}

/** Whether an adapter needs no further lookup. */
export function isFound(lora: JobLora): boolean {
  return lora.from !== 'upload' || lora.uploadId !== notFound;
}

/**
 * Looks uploads up again that were not found at submission.
 *
 * @returns the adapters, or a sentence that names the one that is missing
 */
export async function findMissing(
  { rows }: Pick<IntakeContext, 'rows'>,
  owner: string,
  loras: readonly JobLora[],
): Promise<readonly JobLora[] | string> {
  const found: JobLora[] = [];
  for (const lora of loras) {
    const { path, scale } = lora;
    const upload = isFound(lora) ? null : await rows.newest(owner, path.normalize('NFC'));
    if (!upload && !isFound(lora)) return `The LoRA ${shortened(path)} is not among your uploads.`;
    found.push(upload ? { path, scale, from: 'upload', uploadId: upload.id } : lora);
  }
  return found;
}

function isUploadName(path: string): boolean {
  return !/[/\\]/.test(path) && path.toLowerCase().endsWith('.safetensors');
}
