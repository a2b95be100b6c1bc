/** @module-tag full */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { ProtocolWorker } from '../testing/protocol-worker';
import { type FilesTest, startFilesTest } from './testing/node';

let node: FilesTest;
/** Every kind of file that is sent, by its address. */
const addresses: Record<string, string> = {};

beforeAll(async () => {
  node = await startFilesTest();
  const job = await node.claim();
  addresses.input = node.relay.files.links.workerImage(job, 'image');
  const upload = await node.upload('a.png', node.image, 'image/png');
  addresses.upload = (
    (await upload.json()) as { data: { download_url: string } }
  ).data.download_url;
  const { body } = await node.api('/api/v3/kinora/wan-2.2/i2v-720p-lora', {
    image: addresses.upload,
    prompt: 'A test',
  });
  const worker = new ProtocolWorker({ origin: node.origin, token: node.workerToken });
  expect(await worker.once(AbortSignal.timeout(20_000))).toBe(true);
  const result = await node.api(`/api/v3/predictions/${body.data.id}`);
  addresses.output = result.body.data.outputs[0];
  const { body: share } = await node.api(`/api/v3/predictions/${body.data.id}/share`, {});
  addresses.share = `${share.data.url}/video.mp4`;
}, 60_000);
afterAll(() => node?.stop());

it.each(['input', 'upload', 'output', 'share'])(
  'a suffix longer than the file is the whole file, and HEAD has no ranges: %s',
  async (kind) => {
    const address = addresses[kind] ?? '';
    const whole = Buffer.from(await (await node.get(address)).arrayBuffer());
    const size = whole.length;
    for (const range of [`bytes=-${size + 1}`, 'bytes=-999999999', `bytes= -${size}`]) {
      const answer = await node.get(address, { headers: { Range: range } });
      expect(answer.status, range).toBe(206);
      expect(answer.headers.get('content-range')).toBe(`bytes 0-${size - 1}/${size}`);
      expect(Buffer.from(await answer.arrayBuffer()).equals(whole)).toBe(true);
    }
    const none = await node.get(address, { headers: { Range: 'bytes=-0' } });
    expect(none.status).toBe(416);
    for (const range of ['bytes=0-3', `bytes=${size}-`]) {
      const head = await node.get(address, { method: 'HEAD', headers: { Range: range } });
      expect(head.status).toBe(200);
      expect(head.headers.get('content-length')).toBe(`${size}`);
      expect(head.headers.get('content-range')).toBeNull();
    }
  },
);
