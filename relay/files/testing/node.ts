import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Caller } from '../../access/caller';
import type { ClaimedJob } from '../../jobs';
import { testWorker } from '../../testing/jobs';
import type { Answered } from '../../testing/requests';
import { startTestRelay, type TestRelay, type TestRelayOptions } from '../../testing/server';

const goldens = fileURLToPath(
  new URL('../../../lib/models/wan/goldens/tiny-wan22-ti2v/', import.meta.url),
);

/** A real picture and a real adapter. */
export const imageFile = `${goldens}image.png`;
export const loraFile = `${goldens}loras/a_comfy.safetensors`;

/** A node with what tests of files do on it. */
export interface FilesTest extends TestRelay {
  readonly image: Buffer;
  readonly lora: Buffer;
  /** A path or an absolute address of the node, with headers and all. */
  get(address: string, init?: RequestInit): Promise<Response>;
  /** A call of the API with the owner's key; `data` of its answer, or the refusal's body. */
  api(path: string, body?: unknown, key?: string): Promise<{ status: number; body: ApiBody }>;
  /** Uploads a file as a form. */
  upload(name: string, bytes: Uint8Array, type?: string, field?: string): Promise<Response>;
  /** Submits a job that is ready at once, and claims it. */
  claim(extra?: Record<string, unknown>): Promise<ClaimedJob>;
  worker(): Promise<Caller>;
}

/** What tests read of the API's answers. */
export type ApiBody = Answered['json'];

/** Starts a node; tests stop it. */
export async function startFilesTest(options: TestRelayOptions = {}): Promise<FilesTest> {
  const [node, image, lora] = await Promise.all([
    startTestRelay({
      ...options,
      // A slow machine must not lose the leases of these tests: nobody sends heartbeats here.
      settings: { KINORA_LEASE_SECONDS: '3600', ...options.settings },
    }),
    readFile(imageFile),
    readFile(loraFile),
  ]);
  const get = (address: string, init: RequestInit = {}) =>
    fetch(address.startsWith('/') ? node.origin + address : address, init);
  const api: FilesTest['api'] = async (path, body, key = node.apiKey) => {
    const sent = { key, ...(body !== undefined && { body }) };
    const { status, json } = await node.send(body === undefined ? 'GET' : 'POST', path, sent);
    return { status, body: json };
  };
  const upload: FilesTest['upload'] = async (name, bytes, type = '', field = 'file') => {
    const body = new FormData();
    body.append(field, new Blob([Uint8Array.from(bytes)], { type }), name);
    const headers = { authorization: `Bearer ${node.apiKey}` };
    return await get('/api/v3/media/upload/binary', { method: 'POST', headers, body });
  };
  const worker = () => node.relay.keys.authenticate(`Bearer ${node.workerToken}`, 'worker');
  return {
    ...node,
    image,
    lora,
    get,
    api,
    upload,
    worker,
    async claim(extra = {}) {
      const { body } = await api('/api/v3/kinora/wan-2.2/i2v-720p-lora', {
        image: `data:image/png;base64,${image.toString('base64')}`,
        prompt: 'A test',
        ...extra,
      });
      const job = await node.relay.jobs.claimNext(await worker(), testWorker());
      if (!job || job.id !== body.data?.id) throw new Error(`Not claimed: ${JSON.stringify(body)}`);
      return job;
    },
  };
}
