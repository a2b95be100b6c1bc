import { expect, test } from 'vitest';
import { latentSizeOf } from '../../pipeline/latents';
import { tinyFolder, tinyManifest } from './testing/model';
import { wan22Family } from './wan22';

test('a model that is counted by its configuration is the one that would be opened', async () => {
  const manifest = tinyManifest();
  const opened = await wan22Family.open(manifest, tinyFolder);
  const counted = await wan22Family.count(manifest.precision, tinyFolder);
  const native = { ...manifest.nativeSizes['1280*720'], frames: manifest.maxClipFrames };
  const size = latentSizeOf(opened.latents, native);
  expect(latentSizeOf(counted.latents, native)).toEqual(size);
  expect(counted.flops(size, 'full')).toEqual(opened.flops(size, 'full'));
  const [plan, other] = await Promise.all([
    counted.planMemory({ native }),
    opened.planMemory({ native }),
  ]);
  expect(plan.full).toEqual(other.full);
  for (const stage of ['text', 'denoise'] as const) {
    // The checkpoint has its tensors as f32; the store has them in blocks where they fit.
    const ratio = counted.weightBytes(stage) / opened.weightBytes(stage);
    expect(ratio, stage).toBeGreaterThan(0.2);
    expect(ratio, stage).toBeLessThanOrEqual(1.01);
  }
});
