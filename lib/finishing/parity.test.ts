import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { nodeBackend } from '../models/wan22/testing/model';
import { runParity } from '../pipeline/parity';
import { diskFolder } from '../weights/testing/files';
import { finishingParity } from './parity';

const backend = nodeBackend();
afterAll(() => backend.dispose());

async function stages(name: string) {
  const folder = diskFolder(fileURLToPath(new URL(`goldens/${name}`, import.meta.url)));
  const lines = await runParity({ finishing: finishingParity }, folder, backend);
  expect(lines.filter(({ ok, tolerance }) => !ok || tolerance > 1e-5)).toEqual([]);
  expect(backend.counters().liveBytes).toBe(0);
  return lines.map(({ stage }) => stage);
}

test('the upscaler gives the picture of the reference, and it halved', async () => {
  expect(await stages('tiny-realesr')).toEqual(['x4', 'x2']);
});

test('the interpolator gives features, flows and the frame of the reference', async () => {
  const flows = [0, 1, 2, 3, 4].map((i) => `flow_block${i}`);
  expect(await stages('tiny-rife')).toEqual(['features0', 'features1', ...flows, 'middle']);
});
