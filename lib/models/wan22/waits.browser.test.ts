/** @module-tag full */

import { afterAll, beforeAll, describe } from 'vitest';
import { browserRuntime, WebGpuBackend } from '../../gpu';
import { httpFolder } from '../../weights';
import { usualChoice } from '../wan/plan';
import { waitsTests } from './testing/waits';

const folder = (path: string) => httpFolder(new URL(`/lib/models/wan22/${path}/`, location.href));
const folders = { goldens: folder('goldens'), model: folder('goldens/model') };

describe.each(['runtime', 'exact'] as const)('waits, %s', { timeout: 400_000 }, (mode) => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await WebGpuBackend.create(await browserRuntime());
    backend.kernels = usualChoice(mode);
  });
  afterAll(() => backend.dispose());
  waitsTests(mode, () => backend, folders);
});
