import type { Readable } from 'node:stream';
import { json } from 'node:stream/consumers';
import { z } from 'zod';
import { bareAddress, groupPairs, KinoraError } from '../../../lib/contract';
import { ApiError, type LoraNeed, needOfLora, type Submission } from '../../../lib/contract/v3';
import { parseAddress } from '../../../lib/weights/hub/address';
import { GuardError } from '../../guard/addresses';
import { shortened } from '../../http/input';
import { Kept } from '../../kept';
import type { JobLora } from '../../store/schema';
import { withCheckedHeader } from '../inputs';
import { invalidField } from '../requests';
import { linkedUpload } from '../uploads';
import type { IntakeContext } from './index';

/** Marks an upload that is not there yet: looked up again before a worker gets the job. */
const notFound = '';

/**
 * The meaning of an adapter's path: the name of an uploaded file (no slash, ends in `.safetensors`), the
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
  const { scale, noise } = requested;
  const common = { scale, ...(noise && { noise }) };
  const path = requested.path.trim();
  if (isUploadName(path)) {
    const upload = await rows.newest(owner, path.normalize('NFC'));
    return { path, ...common, from: 'upload', uploadId: upload?.id ?? notFound };
  }
  const upload = await linkedUpload({ links, rows }, path, owner);
  if (upload !== undefined) {
    if (!upload?.filename.toLowerCase().endsWith('.safetensors')) {
      throw invalidField(field, `${field} is not an upload of a LoRA of yours, or has expired.`);
    }
    // Its bytes may still be arriving: then it is looked up again by its name.
    const uploadId = upload.blobKey === null ? notFound : upload.id;
    return { path: upload.filename, ...common, from: 'upload', uploadId };
  }
  try {
    const address = parseAddress(path, config.KINORA_HUB);
    const isLink = /^https?:/i.test(path);
    if (address.kind === 'link' || (isLink && address.revision !== 'main')) {
      // Workers fetch the main revision only; any other comes through the relay.
      const url = address.kind === 'link' ? address.url : path.replace('/blob/', '/resolve/');
      return { path: bareAddress(path), ...common, from: 'link', url: guard.check(url).href };
    }
    const file = address.kind === 'file' ? address.path : null;
    if (file !== null && !file.toLowerCase().endsWith('.safetensors')) {
      throw invalidField(field, `${field} must name a .safetensors file.`);
    }
    const { repository } = address;
    return { path: bareAddress(path), ...common, from: 'hub', repository, file };
  } catch (thrown) {
    if (thrown instanceof ApiError) throw thrown;
    if (!(thrown instanceof KinoraError || thrown instanceof GuardError)) throw thrown;
    throw invalidField(field, `${field}: ${shortened(thrown.message)}`, { cause: thrown });
  }
}

export function isFound(lora: JobLora): boolean {
  return lora.from !== 'upload' || lora.uploadId !== notFound;
}

/**
 * Looks uploads up again that were not found at submission.
 *
 * @throws GuardError with a sentence that names the one that is missing
 */
export async function findMissing(
  { rows }: Pick<IntakeContext, 'rows'>,
  owner: string,
  loras: readonly JobLora[],
): Promise<readonly JobLora[]> {
  const resolved: JobLora[] = [];
  for (const lora of loras) {
    const { path } = lora;
    const upload = isFound(lora) ? null : await rows.newest(owner, path.normalize('NFC'));
    if (!upload && !isFound(lora)) {
      throw new GuardError('refused', `The LoRA ${shortened(path)} is not among your uploads.`);
    }
    resolved.push(upload ? { ...lora, from: 'upload', uploadId: upload.id } : lora);
  }
  return resolved;
}

function isUploadName(path: string): boolean {
  return !/[/\\]/.test(path) && path.toLowerCase().endsWith('.safetensors');
}

/** Longest request for a look at an adapter, in milliseconds: a submission waits for it. */
const totalMs = 2000;
const maxListBytes = 4_000_000;
/** The latest answers of links and of the hub, failures too. */
const known = new Kept<LoraNeed | null>(60_000, 1000);

const listSchema = z.array(z.looseObject({ path: z.string() }));

/**
 * Adapters with what they need of a worker: the model that they were made for. One that cannot be read needs nothing:
 * the worker that gets it says what is wrong with it.
 */
export async function withNeeds(
  context: IntakeContext,
  loras: readonly JobLora[],
): Promise<JobLora[]> {
  return await Promise.all(
    loras.map(async (lora) => {
      if (lora.need !== undefined || !isFound(lora)) return lora;
      const read = () => needOf(context, lora).catch(() => null);
      const name = `${context.config.KINORA_HUB} ${lora.from === 'link' ? lora.url : lora.path}`;
      return { ...lora, need: await (lora.from === 'upload' ? read() : known.get(name, read)) };
    }),
  );
}

/** A sentence on adapters that no model takes together; null where one may. */
export function misfitOf(loras: readonly JobLora[]): string | null {
  const needs = new Set(loras.flatMap(({ need }) => need ?? []));
  if (needs.size < 2) return null;
  const targets = loras.flatMap(({ path, need }) => (need ? `${path} for ${sizes[need]}` : []));
  return `The LoRAs are for different models: ${targets.join(', ')}.`;
}
const sizes: Readonly<Record<LoraNeed, string>> = { lora_5b: 'the 5B', lora_14b: 'the 14B' };

async function needOf(context: IntakeContext, lora: JobLora): Promise<LoraNeed | null> {
  const { rows, blobs } = context;
  if (lora.from === 'upload') {
    const upload = await rows.get(lora.uploadId);
    return upload?.blobKey ? await readNeed(await blobs.read(upload.blobKey)) : null;
  }
  const url = lora.from === 'link' ? lora.url : await hubUrl(context, lora);
  return url === null ? null : await readNeed(await get(context, url));
}

function get(
  { guard, config }: IntakeContext,
  url: string,
  maxBytes = config.KINORA_MAX_LORA_BYTES,
) {
  return guard.fetch(url, { redirects: 5, maxBytes, totalMs });
}

/** File of an adapter on the hub: the one of its repository, or the first of its pair, where it names no file. */
async function hubUrl(
  context: IntakeContext,
  { repository, file }: Extract<JobLora, { from: 'hub' }>,
): Promise<string | null> {
  const hub = context.config.KINORA_HUB.replace(/\/+$/, '');
  let path = file;
  if (path === null) {
    const url = `${hub}/api/models/${repository}/tree/main?recursive=true`;
    const answer = await get(context, url, maxListBytes);
    const files = listSchema.parse(await json(answer.body)).map((entry) => entry.path);
    const [only] = groupPairs(
      files.filter((one) => one.endsWith('.safetensors')),
      String,
    );
    path = only?.[0] ?? null;
  }
  if (path === null) return null;
  return `${hub}/${repository}/resolve/main/${path.split('/').map(encodeURIComponent).join('/')}`;
}

async function readNeed(file: {
  readonly body: Readable;
  readonly bytes: number | null;
}): Promise<LoraNeed | null> {
  try {
    const { header } = await withCheckedHeader(file.body, file.bytes);
    return needOfLora([...header.tensors.values()].map(({ shape }) => shape));
  } finally {
    file.body.destroy();
  }
}
