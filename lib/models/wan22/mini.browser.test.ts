import { expect, test } from 'vitest';
import { createBackend } from '../../gpu';
import { runParity } from '../../pipeline/parity';
import { httpFolder } from '../../weights';
import { wan22Checks } from './checks';
import { withModel } from './testing/mini';

test('the bundled model agrees with its reference tensors on WebGPU', {
  timeout: 300_000,
  tags: ['full'],
}, async () => {
  const references = httpFolder(new URL('/lib/models/wan22/goldens-mini/', location.href));
  const model = httpFolder(new URL('/models/mini/', location.href));
  const backend = await createBackend('webgpu');
  const lines = await runParity({ wan22: wan22Checks }, withModel(references, model), backend);
  // The LoRAs of the export are not kept.
  const wrong = lines.filter(
    ({ relativeRms, tolerance, stage }) =>
      !(relativeRms <= 2 * tolerance) && !stage.includes('lora'),
  );
  expect(wrong).toEqual([]);
  expect(lines.length).toBeGreaterThan(20);
  await backend.dispose();
});
