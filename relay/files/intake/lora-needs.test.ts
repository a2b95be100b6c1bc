import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ClaimAnswer } from '../../../lib/contract/v3';
import { f32, safetensorsBytes } from '../../../lib/weights/testing/files';
import { type LocalHub, startHub } from '../../../lib/weights/testing/hub/server';
import { declarationOf } from '../../testing/api';
import { type FilesTest, startFilesTest } from '../testing/node';

/** An adapter of rank 1 for a model of this width. */
const loraOf = (width: number) => {
  const name = 'diffusion_model.blocks.0.self_attn.q';
  return safetensorsBytes({
    [`${name}.lora_down.weight`]: f32([1, width]),
    [`${name}.lora_up.weight`]: f32([width, 1]),
  });
};

let hub: LocalHub;
let node: FilesTest;
beforeAll(async () => {
  hub = await startHub();
  hub.repositories.put('ann/pair', 'x_high.safetensors', loraOf(5120));
  hub.repositories.put('ann/pair', 'x_low.safetensors', loraOf(5120));
  hub.repositories.put('ann/small', 'deep/er/s.safetensors', loraOf(3072));
  node = await startFilesTest({ settings: { KINORA_HUB: hub.url } });
  await node.upload('large.safetensors', loraOf(5120));
}, 120_000);
afterAll(async () => {
  await node.stop();
  await hub.close();
});

const submit = (...paths: string[]) =>
  node.api('/api/v3/wavespeed-ai/wan-2.1/i2v-720p-lora', {
    image: `data:image/png;base64,${node.image.toString('base64')}`,
    prompt: 'A test',
    loras: paths.map((path) => ({ path, scale: 1 })),
  });

/** A claim of a tab with a model. */
async function claim(model: string, knows: string[]): Promise<ClaimAnswer> {
  const declaration = declarationOf({
    model,
    knows,
    worker_id: model.length.toString(16).padStart(32, '0'),
  });
  const asked = { ...declaration, wait_seconds: 0 };
  return (await node.api('/api/worker/claim', asked, node.workerToken)).body.data;
}
const small = () => claim('wan2.2-ti2v-5b', ['lora_5b']);
const large = () => claim('wan2.1-i2v-14b-720p', ['lora_14b']);

test.each([
  ['an upload', () => 'large.safetensors'],
  ['a file of the hub', () => 'ann/pair/x_low.safetensors'],
  ['a pair of the hub', () => 'ann/pair'],
  ['a link', () => `${hub.url}/ann/pair/resolve/main/x_high.safetensors?download=true`],
])('a LoRA of the 14B as %s waits for a tab that has a 14B', async (_, path) => {
  const { body } = await submit(path());
  const { id } = body.data ?? {};
  expect(await small()).toMatchObject({ job: null, skipped: { needs: 1 } });
  const waiting = await node.api(`/api/v3/predictions/${id}/result`);
  // From the second time on the tab with a 14B is connected, and busy.
  const missing = path() === 'large.safetensors' ? 'worker' : 'queue';
  expect(waiting.body.data).toMatchObject({ status: 'created', waiting_for: missing });
  expect((await large()).job?.id).toBe(id);
});

test('one of the 5B goes to the 5B, also where another model is preferred; /models tells who serves', async () => {
  const { body } = await submit('ann/small/deep/er/s.safetensors');
  expect(await large()).toMatchObject({ job: null, skipped: { needs: 1 } });
  expect((await small()).job?.id).toBe(body.data?.id);
  const models = (await node.api('/api/v3/models')).body.data as unknown as readonly object[];
  expect(models.at(-1)).toMatchObject({
    model_id: 'wavespeed-ai/wan-2.1/i2v-720p-lora-ultra-fast',
    workers: 2,
    served_by: [
      { model: 'wan2.1-i2v-14b-720p', workers: 1 },
      { model: 'wan2.1-i2v-14b-480p', workers: 0 },
      { model: 'wan2.2-ti2v-5b', workers: 1 },
      { model: 'mini', workers: 0 },
    ],
  });
});

test('LoRAs that no model takes together are refused', async () => {
  const { status, body } = await submit('ann/small', 'large.safetensors');
  expect([status, body.details?.[0]?.field]).toEqual([400, 'loras']);
  expect(body.message).toContain('ann/small for the 5B, large.safetensors for the 14B');
});
