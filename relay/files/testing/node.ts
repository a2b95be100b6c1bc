import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Caller } from '../../access/caller';
import type { ClaimedJob } from '../../jobs';
import { testWorker } from '../../testing/jobs';
import { pgliteTemplate } from '../../testing/pglite';
import { startTestRelay, type TestRelay, type TestRelayOptions } from '../../testing/server';

const goldens = fileURLToPath(new URL('../../../lib/models/wan22/goldens/', import.meta.url));

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
  api(path: string, body?: unknown): Promise<{ status: number; body: ApiBody }>;
  /** Submits a job that is ready at once, and claims it. */
  claim(extra?: Record<string, unknown>): Promise<ClaimedJob>;
  worker(): Promise<Caller>;
}

/** What tests read of the API's answers. */
export interface ApiBody {
  readonly message: string;
  readonly error_code?: string;
  readonly details?: readonly { field: string; message: string }[];
  readonly data?: {
    readonly id?: string;
    readonly status?: string;
    readonly error?: string;
    readonly code?: number;
    readonly outputs?: string[];
    readonly type?: string;
    readonly filename?: string;
    readonly size?: number;
    readonly download_url?: string;
    readonly upload?: { readonly url: string; readonly headers: Record<string, string> };
  };
}

/** Starts a node; tests stop it. */
export async function startFilesTest(options: TestRelayOptions = {}): Promise<FilesTest> {
  const folder = await mkdtemp(path.join(tmpdir(), 'kinora-files-'));
  // Copying a database takes a moment, making one takes seconds.
  await cp(await pgliteTemplate(), folder, { recursive: true });
  const [node, image, lora] = await Promise.all([
    startTestRelay({
      folder,
      ...options,
      // A slow machine must not lose the leases of these tests: nobody sends heartbeats here.
      settings: { KINORA_LEASE_SECONDS: '3600', ...options.settings },
    }),
    readFile(imageFile),
    readFile(loraFile),
  ]);
  const get = (address: string, init: RequestInit = {}) =>
    fetch(address.startsWith('/') ? node.origin + address : address, init);
  const api: FilesTest['api'] = async (path, body) => {
    const answer = await get(path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${node.apiKey}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as ApiBody };
  };
  const worker = () => node.relay.keys.authenticate(`Bearer ${node.workerToken}`, 'worker');
  return {
    ...node,
    image,
    lora,
    get,
    api,
    worker,
    async stop() {
      await node.stop();
      await rm(folder, { recursive: true, force: true });
    },
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
