/** @module-tag full */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GET, HEAD } from '../../app/api/[[...path]]/route';
import { endpoints, type OperationId } from '../../lib/contract/v3';
import { submission } from '../testing/api';
import { startTestRelay, type TestRelay } from '../testing/server';
import { answer } from './answer';
import { setRelay } from './route-handler';

/** A node whose requests come over HTTP, and the same node under Next's route handler. */
let node: TestRelay;
let removeRelay = () => {};
let id = '';
beforeAll(async () => {
  node = await startTestRelay({ settings: { KINORA_READS_PER_MINUTE: '5000' } });
  removeRelay = setRelay(node.relay, answer);
  const sent = { key: node.apiKey, body: submission };
  id = (await node.send('POST', '/api/v3/kinora/wan-2.2/i2v-720p-lora', sent)).json.data.id;
}, 120_000);
afterAll(async () => {
  removeRelay();
  await node.stop();
});

const frequent = (Object.keys(endpoints) as OperationId[]).filter(
  (name) => 'frequent' in endpoints[name],
);
const reads = frequent.filter(
  (name) => 'params' in endpoints[name] && endpoints[name].method === 'GET',
);

/** What a client sees, without what differs from one request to the next, and HTTP's own headers. */
async function seen(response: Response) {
  const own = new Set(['date', 'connection', 'keep-alive', 'content-length', 'ratelimit-reset']);
  const headers = [...response.headers].filter(([name]) => !own.has(name));
  return {
    status: response.status,
    headers: Object.fromEntries(headers.map(([k, v]) => [k, /remaining/.test(k) ? 'n' : v])),
    body: await response.text(),
  };
}

describe('requests that do not go through Next', () => {
  it('are the reads of a prediction, and what each worker sends all the time', () => {
    expect(reads).toEqual(['result', 'get', 'legacyResult']);
    expect(frequent).toEqual([...reads, 'workerMe', 'claim', 'heartbeat']);
  });

  interface Case {
    readonly id?: string;
    readonly method?: 'GET' | 'HEAD';
    readonly query?: string;
    readonly key?: () => string;
  }
  const cases: readonly [name: string, status: number, request: Case][] = [
    ['a prediction', 200, {}],
    ['its head', 200, { method: 'HEAD' }],
    ['a query', 200, { query: '?wait=0.1' }],
    ['no prediction', 404, { id: '0'.repeat(32) }],
    ['no key', 401, { key: () => '' }],
    ['a worker token', 403, { key: () => node.workerToken }],
  ];
  it.each(cases)(
    'are answered as through its route handler: %s',
    async (_name, status, request) => {
      const { id: asked = id, method = 'GET', query = '' } = request;
      const key = request.key?.() ?? node.apiKey;
      const headers = {
        'x-request-id': 'same-in-both',
        'x-kinora-address': '127.0.0.1',
        ...(key !== '' && { authorization: `Bearer ${key}` }),
      };
      for (const operation of reads) {
        const address = `${node.origin}${endpoints[operation].path.replace('{id}', asked)}${query}`;
        const direct = await seen(await fetch(address, { method, headers }));
        const route = method === 'GET' ? GET : HEAD;
        const throughNext = await seen(await route(new Request(address, { method, headers })));
        expect(direct, operation).toEqual(throughNext);
        expect(direct.status, operation).toBe(status);
      }
    },
  );

  it('a client that disconnects ends the wait for its answer', async () => {
    const stop = new AbortController();
    const address = `${node.origin}/api/v3/predictions/${id}/result?wait=8`;
    const headers = { authorization: `Bearer ${node.apiKey}` };
    const waiting = fetch(address, { headers, signal: stop.signal });
    await expect.poll(() => node.relay.watches.count).toBe(1);
    stop.abort();
    await expect(waiting).rejects.toThrow();
    await expect.poll(() => node.relay.watches.count, { timeout: 4000 }).toBe(0);
  });
});
