import type { Readable } from 'node:stream';
import { json } from 'node:stream/consumers';
import { z } from 'zod';
import { groupPairs } from '../../../lib/contract';
import { type LoraNeed, needOfLora } from '../../../lib/contract/v3/worker';
import { Kept } from '../../kept';
import type { JobLora } from '../../store/schema';
import { withCheckedHeader } from '../inputs';
import type { IntakeContext } from './index';
import { isFound } from './loras';

/** Longest request for a look at an adapter, in milliseconds: a submission waits for it. */
const totalMs = 2000;
/** Largest list of a repository's files. */
const maxListBytes = 4_000_000;
/** What links and the hub said lately, also that they could not be read. */
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
      return {
        ...lora,
        need: await (lora.from === 'upload'
          ? read()
          : known.get(`${context.config.KINORA_HUB} ${lora.path}`, read)),
      };
    }),
  );
}

/** A sentence on adapters that no model takes together; null where one may. */
export function misfitOf(loras: readonly JobLora[]): string | null {
  const needs = new Set(loras.flatMap(({ need }) => need ?? []));
  if (needs.size < 2) return null;
  const made = loras.flatMap(({ path, need }) => (need ? `${path} for ${sizes[need]}` : []));
  return `The LoRAs are for different models: ${made.join(', ')}.`;
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

/** Where the hub has an adapter: the one of its repository, or the first of its pair, where it names no file. */
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
