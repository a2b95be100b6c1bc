import { createHmac, timingSafeEqual } from 'node:crypto';
import { bareAddress } from '../../lib/contract';
import { describeContents, type ImageField, type PredictionInput } from '../../lib/contract/v3';
import { type Config, localOrigin } from '../config';
import type { ClaimedJob } from '../jobs';
import type { JobRow, UploadRow } from '../store/schema';

/** Right that a signature gives. It is part of the signed text. */
export type LinkPurpose = 'video' | ImageField | `lora/${number}` | 'upload' | 'download';

/** How long an upload ticket may be used, in milliseconds. */
const ticketMs = 3_600_000;
/**
 * Absolute addresses of this installation. The origin is `KINORA_PUBLIC_URL`, else the host and the port that the
 * server listens on; it is never taken from a request, whose Host header the caller chooses. Signatures are
 * HMAC-SHA256 over purpose, id, end and nonce: a new nonce revokes the links.
 */
export function createLinks({
  config,
  secret,
}: {
  config: Pick<Config, 'KINORA_PUBLIC_URL' | 'KINORA_HOST' | 'PORT'>;
  secret: string;
}) {
  const publicUrl = config.KINORA_PUBLIC_URL ?? localOrigin(config);
  const sign = (purpose: LinkPurpose, id: string, nonce: string, expires: number) =>
    createHmac('sha256', secret).update([purpose, id, expires, nonce].join('\n')).digest('hex');
  const query = (purpose: LinkPurpose, id: string, nonce: string, end: Date) => {
    const expires = Math.floor(end.getTime() / 1000);
    return `expires=${expires}&signature=${sign(purpose, id, nonce, expires)}`;
  };
  /**
   * Verifies that a query was signed for this purpose, id and nonce; its end is not compared with the time.
   *
   * @returns when the link ends, or null for a wrong signature
   */
  const verify = (
    purpose: LinkPurpose,
    id: string,
    nonce: string,
    query: URLSearchParams,
  ): Date | null => {
    const expires = Number(query.get('expires'));
    const signature = query.get('signature') ?? '';
    if (!Number.isSafeInteger(expires) || !/^[0-9a-f]{64}$/.test(signature)) return null;
    const right = Buffer.from(sign(purpose, id, nonce, expires), 'hex');
    return timingSafeEqual(right, Buffer.from(signature, 'hex')) ? new Date(expires * 1000) : null;
  };

  /** Whether a query was signed for this, and the link has not ended. */
  const isOpen = (...link: Parameters<typeof verify>): boolean =>
    (verify(...link)?.getTime() ?? 0) > Date.now();

  /** The rest of an address's path below a folder of this installation; null for any other address. */
  const pathBelow = (folder: string, text: string): string | null => {
    if (!URL.canParse(text)) return null;
    const [own, url] = [new URL(publicUrl), new URL(text)];
    const start = own.pathname.replace(/\/$/, '') + folder;
    const isBelow = originOf(url) === originOf(own) && url.pathname.startsWith(start);
    return isBelow ? url.pathname.slice(start.length) : null;
  };
  return {
    publicUrl,
    verify,
    isOpen,
    prediction: (id: string) => `${publicUrl}/api/v3/predictions/${id}/result`,
    /** Address of the page of a link; its files are below it. */
    share: (id: string) => `${publicUrl}/s/${id}`,
    /** The id of the link whose page on this server an address names; null for any other address. */
    shareOf: (text: string): string | null =>
      /^([0-9a-f]{32})\/?$/.exec(pathBelow('/s/', text) ?? '')?.[1] ?? null,
    /** Address of the video; null where there is none or it has expired. */
    output(job: Omit<JobRow, 'input'>): string | null {
      const { id, status, outputKey, outputNonce, outputExpiresAt } = job;
      if (status !== 'completed' || !outputKey || !outputNonce || !outputExpiresAt) return null;
      if (outputExpiresAt.getTime() <= Date.now()) return null;
      return `${publicUrl}/files/video/${id}.mp4?${query('video', id, outputNonce, outputExpiresAt)}`;
    },
    /** Path (no origin) for workers: an image of a job, or one of its adapters. */
    workerImage: (job: ClaimedJob, field: ImageField) =>
      `/files/jobs/${job.id}/${field}?${query(field, job.id, leaseNonce(job), job.deadline)}`,
    workerLora: (job: ClaimedJob, index: number) => {
      const signed = query(`lora/${index}`, job.id, leaseNonce(job), job.deadline);
      return `/files/jobs/${job.id}/lora/${index}?${signed}`;
    },
    /** The address to which an upload's bytes are sent, and the one from which they are read. */
    uploadTarget(upload: UploadRow): string {
      const end = new Date(upload.createdAt.getTime() + ticketMs);
      return `${publicUrl}/files/uploads/${upload.id}?${query('upload', upload.id, '', end)}`;
    },
    uploadDownload(upload: UploadRow): string {
      const name = encodeURIComponent(upload.filename);
      const signed = query('download', upload.id, '', upload.expiresAt);
      return `${publicUrl}/files/uploads/${upload.id}/${name}?${signed}`;
    },
    /**
     * The upload that one of our own download links names; null for any other address. The signature identifies a
     * link of this server under every name: an alias, a proxy's, an address.
     */
    uploadOf(text: string): string | null {
      if (!URL.canParse(text)) return null;
      const url = new URL(text);
      const id = /\/files\/uploads\/([0-9a-f]{32})\/[^/]+$/.exec(url.pathname)?.[1];
      return id && isOpen('download', id, '', url.searchParams) ? id : null;
    },
    /** An address as it leaves the server: bare, unless it is a download link of our own, for its owner. */
    shown: (text: string): string =>
      pathBelow('/files/uploads/', text) === null ? bareAddress(text) : text,
    /** Whether an address has the form of our own download links on our own host, valid or not. */
    isOwnUpload: (text: string): boolean => pathBelow('/files/uploads/', text) !== null,
  };
}

/** The origin, where the names of this machine are one, and a final dot of a name does not count. */
function originOf({ protocol, hostname, port }: URL): string {
  const host = hostname.replace(/\.$/, '');
  const isLocal = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(host);
  return `${protocol}//${isLocal ? 'localhost' : host}:${port}`;
}

export type Links = ReturnType<typeof createLinks>;

/** Fields that the answer about a job and its webhooks have in common. */
export function describeRecord<Status extends JobRow['status']>(
  job: Omit<JobRow, 'input'> & { readonly status: Status },
  links: Pick<Links, 'prediction' | 'output'>,
) {
  const output = links.output(job);
  const outputs = output === null ? [] : [output];
  return {
    id: job.id,
    model: job.model,
    outputs,
    urls: { get: links.prediction(job.id) },
    ...describeContents(job, outputs),
    status: job.status,
    created_at: job.createdAt.toISOString(),
    error: job.error,
    ...(job.code !== null && { code: job.code }),
    seed: job.seed,
  };
}

/** The request of a submission, as its result and its webhooks tell it. */
export function describeInput(
  { loras, ...input }: PredictionInput,
  { shown }: Pick<Links, 'shown'>,
) {
  return {
    ...input,
    loras: loras.map((lora) => ({ ...lora, path: shown(lora.path) })),
    image: shown(input.image),
    ...(input.last_image !== undefined && { last_image: shown(input.last_image) }),
  };
}

/** The nonce of a running attempt: its links end with its lease. */
export function leaseNonce({ attempt, leaseToken }: ClaimedJob): string {
  return `${attempt}:${leaseToken}`;
}
