import { expect, test } from 'vitest';
import { createBackend } from '../../gpu';
import { runParity } from '../../pipeline/parity';
import { httpFolder } from '../../weights';
import { wan22Checks } from './checks';

const loraFiles = [
  'a_comfy.safetensors',
  'a_kohya_alpha.safetensors',
  'a_peft.safetensors',
  'b_lightx2v_diff_b.safetensors',
  'wrong_base_14b.safetensors',
];

const families = { wan22: wan22Checks };

test('every stage agrees with the goldens on WebGPU', {
  timeout: 600_000,
  tags: ['full'],
}, async () => {
  const folder = httpFolder(new URL('/lib/models/wan22/goldens/', location.href));
  const backend = await createBackend('webgpu');
  const lines = await runParity(families, folder, backend, { loraFiles });
  expect(lines.filter(({ ok }) => !ok)).toEqual([]);
  expect(lines.length).toBe(58);
  // f32 lands far below its tolerances.
  const exact = lines.filter(({ stage }) => stage !== 'latents, 8-bit weights');
  expect(Math.max(...exact.map(({ relativeRms }) => relativeRms))).toBeLessThan(1e-5);
  await backend.dispose();
});
