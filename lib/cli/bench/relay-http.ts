import { ensureBuild, startServer } from '../browser/server';
import { evenLoad, fullLoad, type LoadRequest, type LoadResult } from './load';

/** What the server is told so that only its speed is measured. */
const unlimited = {
  KINORA_SUBMITS_PER_MINUTE: '0',
  KINORA_READS_PER_MINUTE: '0',
  KINORA_REQUESTS_PER_ADDRESS: '0',
  KINORA_JOBS_PER_KEY: '0',
};
/** A picture of 2×2 pixels. */
const image =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg==';
const path = '/api/v3/kinora/wan-2.2/i2v-720p-lora';
const connections = 16;
const seconds = 8;

/**
 * Requests through HTTP and Next, on the embedded database, with the load made on the same machine:
 * first as fast as they are answered, then evenly at half that rate.
 */
export async function benchHttp(): Promise<void> {
  await ensureBuild((line) => process.stderr.write(`${line}\n`));
  const server = await startServer({ env: unlimited });
  try {
    const headers = {
      authorization: `Bearer ${server.apiKey}`,
      'content-type': 'application/json',
    };
    const body = JSON.stringify({ image, prompt: 'a boat', num_inference_steps: 1 });
    const submission = { path, method: 'POST', headers, body } as const;
    const first = await fetch(server.origin + path, submission).then((answer) => answer.json());
    const get = `/api/v3/predictions/${first.data.id}/result`;
    process.stdout.write(`HTTP, ${connections} connections, load on the same machine\n`);
    await measure(server.origin, 'results', { path: get, method: 'GET', headers });
    await measure(server.origin, 'submissions (data URI)', submission);
  } finally {
    await server.stop();
  }
}

async function measure(origin: string, name: string, request: LoadRequest): Promise<void> {
  await fullLoad(origin, request, { connections, seconds: 4 });
  const full = await fullLoad(origin, request, { connections, seconds });
  const rate = Math.round(full.perSecond / 2);
  const half = await evenLoad(origin, request, { connections, seconds, rate });
  const failed = full.failed + half.failed;
  process.stdout.write(
    `  ${name.padEnd(24)}${full.perSecond.toFixed(0).padStart(6)}/s (${latency(full)}); ` +
      `at ${rate}/s: ${latency(half)}${failed > 0 ? `; ${failed} FAILED` : ''}\n`,
  );
}

function latency({ p50, p99 }: LoadResult): string {
  return `p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`;
}
