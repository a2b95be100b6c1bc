/** @module-tag full */
import { afterAll, expect, test } from 'vitest';
import { createBackend } from '../gpu';
import { assignKernels } from '../gpu/kernels/assign';
import { httpFolder, type ModelFolder } from '../weights';
import { runParity } from '.';

const backend = await createBackend('webgpu');
afterAll(() => backend.dispose());

const folderOf = (path: string) => httpFolder(new URL(`/lib/${path}/`, location.href));

const loraFiles = [
  'a_comfy.safetensors',
  'a_kohya_alpha.safetensors',
  'a_peft.safetensors',
  'b_lightx2v_diff_b.safetensors',
  'wrong_base_14b.safetensors',
];

/** The references of the quick checker for one picture: it takes up to a minute on an emulated GPU. */
const quick = folderOf('safety/goldens/nsfwjs');
const onePicture: ModelFolder = {
  ...quick,
  json: async () => ({ nsfwjs: '4.4.0', pictures: { '3.png': { index: 3 } } }),
};

// An emulated GPU takes minutes. f32 lands far below its tolerances.
test.each([
  ['5B', 'runtime', folderOf('models/wan/goldens/tiny-wan22-ti2v'), 58, 1e-5],
  ['Real-ESRGAN', 'runtime', folderOf('finishing/goldens/tiny-realesr'), 2, 1e-5],
  ['Real-ESRGAN', 'exact', folderOf('finishing/goldens/tiny-realesr'), 2, 3e-3],
  ['RIFE', 'runtime', folderOf('finishing/goldens/tiny-rife'), 8, 1e-5],
  ['the safety checker', 'runtime', folderOf('safety/goldens'), 53, 1e-5],
  ['the quick checker', 'runtime', onePicture, 8, 4e-6],
] as const)(
  '%s agrees with its references on WebGPU, kernels: %s',
  { timeout: 600_000 },
  async (_, kernels, folder, count, bound) => {
    await assignKernels(backend, kernels);
    const quickChecker = httpFolder(new URL('/nsfwjs/', location.href));
    const lines = await runParity(folder, backend, { loraFiles, quickChecker });
    expect(lines.filter(({ ok }) => !ok)).toEqual([]);
    expect(lines.length).toBe(count);
    const exact = lines.filter(({ stage }) => stage !== 'latents, 8-bit weights');
    expect(Math.max(...exact.map(({ relativeRms }) => relativeRms))).toBeLessThan(bound);
    await backend.releaseSessions();
    expect(backend.counters().liveBytes).toBe(0);
  },
);
