import { afterAll, expect, test } from 'vitest';
import { createBackend } from '../gpu';
import { assignKernels } from '../gpu/kernels/assign';
import { runParity } from '../pipeline/parity';
import { httpFolder } from '../weights';
import { finishingParity } from './parity';

const backend = await createBackend('webgpu');
afterAll(() => backend.dispose());

// An emulated GPU takes minutes.
test.each([
  ['tiny-realesr', 'runtime', 1e-5],
  ['tiny-realesr', 'exact', 3e-3],
  ['tiny-rife', 'runtime', 1e-5],
] as const)(
  '%s on WebGPU, kernels: %s',
  { tags: ['full'], timeout: 300_000 },
  async (name, kernels, tolerance) => {
    await assignKernels(backend, kernels);
    const folder = httpFolder(new URL(`/lib/finishing/goldens/${name}/`, location.href));
    const lines = await runParity({ finishing: finishingParity }, folder, backend);
    expect(lines.filter((line) => !line.ok || line.tolerance !== tolerance)).toEqual([]);
    expect(lines.length).toBe(name === 'tiny-rife' ? 8 : 2);
    await backend.releaseSessions();
    expect(backend.counters().liveBytes).toBe(0);
  },
);
