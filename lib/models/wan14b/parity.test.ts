import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { runParity } from '../../pipeline/parity';
import { diskFolder } from '../../weights/testing/files';
import { modelChecks } from '../checks';
import { nodeBackend } from '../wan22/testing/model';

const goldens = fileURLToPath(new URL('./goldens/', import.meta.url));
const backend = nodeBackend();
afterAll(() => backend.dispose());

test.each([
  ['tiny-wan22-a14b', 10],
  ['tiny-wan21-i2v', 11],
])(
  'every stage of %s agrees with its references',
  async (name, stages) => {
    const folder = `${goldens}${name}/`;
    const lines = await runParity(modelChecks, diskFolder(folder), backend, {
      loraFiles: await readdir(`${folder}loras`),
    });
    expect(lines.filter(({ ok }) => !ok)).toEqual([]);
    expect(lines).toHaveLength(stages);
    for (const { stage, tolerance } of lines) {
      expect(tolerance, stage).toBe(stage.includes('8-bit') ? 5e-2 : 1e-5);
    }
    expect(backend.counters().liveBytes).toBe(0);
  },
  120_000,
);
