import { afterAll, expect, test } from 'vitest';
import { KinoraError } from '../contract';
import { wan22Checks } from '../models/wan22/checks';
import { nodeBackend } from '../models/wan22/testing/model';
import { runParity } from '../pipeline/parity';
import { patchedFolder } from '../weights/testing/files';
import { classifierParity } from './parity';
import { decodePng } from './parity/png';
import { goldenFolder } from './testing/golden';

const backend = nodeBackend();
afterAll(() => backend.dispose());
const families = { wan22: wan22Checks, classifier: classifierParity };

test('pixels are equal; hidden states and logits agree in both layouts', async () => {
  const lines = await runParity(families, goldenFolder, backend);
  expect(lines.filter(({ ok }) => !ok)).toEqual([]);
  expect(lines.length).toBe(53);
  expect(backend.counters().liveBytes).toBe(0);
  const stages = new Map(lines.map((line) => [line.stage, line]));
  for (const image of ['wide', 'tall', 'small']) {
    for (const layout of ['timm.cover', 'transformers']) {
      expect(stages.get(`${image}.${layout}.pixels`)).toMatchObject({ maxAbsolute: 0 });
      expect(stages.get(`${image}.${layout}.logits`)).toMatchObject({ tolerance: 1e-5 });
    }
    expect(stages.has(`${image}.timm.center.hidden_2`)).toBe(true);
    expect(stages.has(`${image}.transformers.hidden_2`)).toBe(true);
  }
});

test('another bilinear or bicubic kernel is a FAIL', async () => {
  const config = (await goldenFolder.json('timm/config.json')) as { pretrained_cfg: object };
  const other = { ...config.pretrained_cfg, interpolation: 'bilinear' };
  const patched = patchedFolder(goldenFolder, {
    'timm/config.json': JSON.stringify({ ...config, pretrained_cfg: other }),
    'transformers/preprocessor_config.json': JSON.stringify({ resample: 3 }),
  });
  const lines = await runParity(families, patched, backend);
  const failed = lines.filter(({ ok }) => !ok).map(({ stage }) => stage);
  expect(failed).toEqual([
    'wide.timm.cover.pixels',
    'tall.timm.cover.pixels',
    'small.timm.cover.pixels',
    'wide.transformers.pixels',
    'tall.transformers.pixels',
    'small.transformers.pixels',
  ]);
});

test('what is not a plain PNG is refused', async () => {
  const refused = decodePng(new TextEncoder().encode('no image'));
  await expect(refused).rejects.toThrow(KinoraError);
});
