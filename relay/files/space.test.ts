/** @module-tag full */

import { createHash } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requestOf } from '../testing/requests';
import { type FilesTest, startFilesTest } from './testing/node';

let node: FilesTest;
beforeAll(async () => {
  node = await startFilesTest();
}, 60_000);
afterAll(() => node?.stop());

/** As if the disk had less than that: what is free is real, what is asked for is not. */
const setFloor = (bytes: number) => Object.assign(node.config, { KINORA_MIN_FREE_BYTES: bytes });
const more = Number.MAX_SAFE_INTEGER;

describe('a disk that is almost full', () => {
  it('takes nothing new, and keeps what runs alive', async () => {
    const { api, apiKey: key, get, origin } = node;
    const ticket = { filename: 'a.png', size: node.image.length };
    const early = await api('/api/v3/media/uploads', ticket);
    const upload = early.body.data?.upload;
    if (!upload) throw new Error('There is no ticket.');
    const job = await node.claim();
    setFloor(more);
    const body = { image: 'https://example.com/a.png', prompt: 'A test' };
    const asWorker = { authorization: `Bearer ${node.workerToken}` };
    const output = `lease_token=${job.leaseToken}&sha256=${'0'.repeat(64)}`;
    const refused = await Promise.all([
      fetch(requestOf('POST', `${origin}/api/v3/kinora/wan-2.2/i2v-720p-lora`, { key, body })),
      fetch(requestOf('POST', `${origin}/api/v3/media/uploads`, { key, body: ticket })),
      node.upload('a.png', node.image, 'image/png'),
      get(upload.url, {
        method: 'PUT',
        headers: upload.headers,
        body: Uint8Array.from(node.image),
      }),
      get(`/api/worker/jobs/${job.id}/output?${output}`, {
        method: 'PUT',
        headers: asWorker,
        body: 'a video',
      }),
    ]);
    for (const answer of refused) {
      const { error_code, message } = (await answer.json()) as Record<string, string>;
      expect({ status: answer.status, error_code }).toEqual({
        status: 503,
        error_code: 'STORAGE_DOWN',
      });
      expect(message).toContain('almost full');
    }
    const heartbeat = await node.send('POST', `/api/worker/jobs/${job.id}/heartbeat`, {
      key: node.workerToken,
      body: { lease_token: job.leaseToken, phase: 'denoise', step: 1, steps: 30 },
    });
    expect(heartbeat.status).toBe(200);
    expect((await api(`/api/v3/predictions/${job.id}/result`)).status).toBe(200);

    setFloor(0);
    expect((await api('/api/v3/media/uploads', ticket)).status).toBe(200);
  });

  it('still takes the video of running work into half of what is held back', async () => {
    const { bavail, bsize } = await statfs(node.config.KINORA_DATA);
    const job = await node.claim();
    setFloor(bavail * bsize * 1.5);
    // What was seen of the disk is believed for a while.
    const ticket = { filename: 'a.png', size: node.image.length };
    const asked = async () => (await node.api('/api/v3/media/uploads', ticket)).status;
    await expect.poll(asked, { timeout: 20_000 }).toBe(503);
    const body = 'half a video';
    const sha256 = createHash('sha256').update(body).digest('hex');
    const address = `/api/worker/jobs/${job.id}/output?lease_token=${job.leaseToken}&sha256=${sha256}`;
    const headers = { authorization: `Bearer ${node.workerToken}` };
    expect((await node.get(address, { method: 'PUT', headers, body })).status).toBe(200);
    setFloor(0);
  });

  it('says what a form must be, and that it is the file that is too large', async () => {
    const noForm = await node.api('/api/v3/media/upload/binary', {});
    expect(noForm.status).toBe(415);
    expect(noForm.body.message).toContain('multipart/form-data');
    expect(noForm.body.message).not.toContain('application/json');
    const large = await node.api('/api/v3/media/uploads', { filename: 'a.png', size: 10 ** 12 });
    expect(large.status).toBe(413);
    expect(large.body.message).toMatch(/^The file is larger than 20,000,000 bytes/);
  });
});
