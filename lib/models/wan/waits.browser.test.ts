/** @module-tag full */

import { afterAll, beforeAll, describe } from 'vitest';
import { browserRuntime, WebGpuBackend } from '../../gpu';
import type { KernelChoice } from '../../gpu/kernels';
import { httpFolder } from '../../weights';
import { waitsTests } from './testing/waits';

const folder = (path: string) =>
  httpFolder(new URL(`/lib/models/wan/goldens/tiny-wan22-ti2v/${path}`, location.href));
const folders = { goldens: folder(''), model: folder('model/') };

/** Small tiles: a large one takes seconds to compile on a CPU. */
const exact: KernelChoice = {
  mode: 'exact',
  linear: { rows: 32, columns: 32, threadRows: 4, threadColumns: 4, shared: 'f32' },
  attention: { queries: 32, keys: 64, shared: 'f32' },
  convolution: { pixels: 16, filters: 16, threadPixels: 1, threadFilters: 4 },
};

describe.each([
  ['runtime', null],
  ['exact', exact],
] as const)('waits, %s', { timeout: 400_000 }, (mode, kernels) => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await WebGpuBackend.create(await browserRuntime());
    backend.kernels = kernels;
  });
  afterAll(() => backend.dispose());
  waitsTests(mode, () => backend, folders);
});
