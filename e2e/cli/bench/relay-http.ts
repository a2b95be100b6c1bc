import autocannon from 'autocannon';
import { ensureBuild, startServer } from '../../browser/server';

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
 * first as fast as they are answered, then at half that rate, where latencies are counted from the
 * moment when a request was due.
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
    const submission = { url: `${server.origin}${path}`, method: 'POST', headers, body } as const;
    const first = await fetch(submission.url, submission).then((response) => response.json());
    const get = `${server.origin}/api/v3/predictions/${first.data.id}/result`;
    process.stdout.write(`HTTP, ${connections} connections, load on the same machine\n`);
    await measure('results', { url: get, headers });
    await measure('submissions (data URI)', submission);
  } finally {
    await server.stop();
  }
}

async function measure(name: string, request: autocannon.Options): Promise<void> {
  await autocannon({ ...request, connections, duration: 2 });
  const full = await autocannon({ ...request, connections, duration: seconds });
  const rate = Math.round(full.requests.average);
  const half = Math.round(rate / 2);
  const calm = await autocannon({ ...request, connections, duration: seconds, overallRate: half });
  const failed = full.non2xx + full.errors + calm.non2xx + calm.errors;
  const latency = ({ latency: { p50, p99 } }: autocannon.Result) => `p50 ${p50} ms, p99 ${p99} ms`;
  process.stdout.write(
    `  ${name.padEnd(24)}${String(rate).padStart(6)}/s (${latency(full)}); ` +
      `at ${half}/s: ${latency(calm)}${failed > 0 ? `; ${failed} FAILED` : ''}\n`,
  );
}
