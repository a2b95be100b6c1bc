/** @module-tag full */

import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { importTestPackage } from '../lib/cli/dev/test-packages';
import { startNodeProcess } from './testing/node-process';
import { submission, submissionPath, submit } from './testing/submitter';

/** What is used of autocannon, which has no types of its own. */
interface Autocannon {
  default(options: Readonly<Record<string, unknown>>): Promise<{
    readonly requests: { readonly average: number; readonly total: number };
    readonly latency: { readonly p50: number; readonly p99: number };
    readonly non2xx: number;
    readonly errors: number;
  }>;
}

/** Seconds of each load: `npm run soak` has more than a test run. */
const duration = process.env.KINORA_SOAK ? 8 : 2;

const folder = await mkdtemp(path.join(os.tmpdir(), 'kinora-load-'));
const node = await startNodeProcess({
  PORT: '0',
  KINORA_DATA: folder,
  KINORA_LOG: 'silent',
  KINORA_SUBMITS_PER_MINUTE: '0',
  KINORA_READS_PER_MINUTE: '0',
  KINORA_REQUESTS_PER_ADDRESS: '0',
  KINORA_JOBS_PER_KEY: '0',
});
afterAll(async () => {
  await node.stop();
  await rm(folder, { recursive: true, force: true });
});

test('results and submissions are answered under the load of 16 connections', async () => {
  const { default: autocannon } = await importTestPackage<Autocannon>('autocannon/autocannon.js');
  const apiKey = node.firstStart?.apiKey ?? '';
  const job = await submit(node.origin, apiKey, '');
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const loads = {
    results: { path: `/api/v3/predictions/${job?.id}/result` },
    submissions: { path: submissionPath, method: 'POST', body: JSON.stringify(submission) },
  };
  for (const [name, { path: where, ...request }] of Object.entries(loads)) {
    const asked = { ...request, headers, duration, connections: 16 };
    const figures = await autocannon({ url: node.origin + where, ...asked });
    const { requests, latency, non2xx, errors } = figures;
    const rate = `${requests.average.toFixed(0)}/s, p50 ${latency.p50} ms, p99 ${latency.p99} ms`;
    process.stdout.write(`${name}, 16 connections, load on the same machine: ${rate}\n`);
    expect({ non2xx, errors }).toEqual({ non2xx: 0, errors: 0 });
    expect(requests.total).toBeGreaterThan(16);
  }
}, 120_000);
