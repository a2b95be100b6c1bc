import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { openCheckpoint } from '../../../weights';
import { diskFolder } from '../../../weights/testing/files';
import { readVideoConfig } from '../../wan14b/config';
import { nodeBackend } from '../../wan22/testing/model';
import { encodeClip } from './encoder';

const model = diskFolder(
  fileURLToPath(new URL('../../wan14b/goldens/tiny-wan22-a14b/model/', import.meta.url)),
);
const backend = nodeBackend();
afterAll(() => backend.dispose());

const [width, height] = [16, 16];
const picture = (phase: number) => ({
  width,
  height,
  data: Float32Array.from({ length: 3 * width * height }, (_, i) => Math.sin(i / 7 + phase)),
});
/** Grey, as another array for each frame: then nothing is taken for what it was before. */
const grey = () => ({ width, height, data: new Float32Array(3 * width * height) });

test('what repeats behind the picture is not computed again, and is the same bit for bit', {
  timeout: 120_000,
}, async () => {
  const { vae: config } = await readVideoConfig(model);
  const checkpoint = await openCheckpoint(model, 'vae');
  // So long that even the last level repeats itself: 36 latent frames.
  const frames = 36;
  const last = 4 * (frames - 1);
  const shown = new Map([
    [0, picture(0)],
    [last, picture(2)],
  ]);
  const all = new Map(
    Array.from({ length: last + 1 }, (_, f) => [f, shown.get(f) ?? grey()] as const),
  );
  let runs = 0;
  const { run } = backend;
  backend.run = (...rest) => {
    runs += 1;
    return run.apply(backend, rest);
  };
  const short = await encodeClip(backend, config, checkpoint, shown, frames);
  const used = runs;
  runs = 0;
  const whole = await encodeClip(backend, config, checkpoint, all, frames);
  expect(short).toEqual(whole);
  expect(used).toBeLessThan(0.5 * runs);
});
