/** @module-tag full */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Backend, browserRuntime, relativeRms, WebGpuBackend } from '../../../gpu';
import { httpFolder } from '../../../weights';
import { createTiledVaeDecoder, measureDecoder } from '.';
import { clipOf, collect, type Goldens, latentsOf, openGoldens, ownBytes } from './testing';

const root = new URL('/lib/models/wan22/goldens/', location.href);

describe('tiled decode on WebGPU', () => {
  let backend: Backend;
  let goldens: Goldens;

  beforeAll(async () => {
    backend = await WebGpuBackend.create(await browserRuntime());
    goldens = await openGoldens(httpFolder(root), httpFolder(new URL('model/', root)));
  });
  afterAll(() => backend.dispose());

  test.each([{ rows: 1, columns: 2, tolerance: 2e-2 }])(
    'the golden video in $rows×$columns tiles',
    async ({ rows, columns, tolerance }) => {
      const { config, checkpoint, size, tensors } = goldens;
      const before = ownBytes(backend);
      await backend.releaseSessions();
      backend.resetPeaks();
      const tiles = { rows, columns, overlap: 4 };
      const decoder = await createTiledVaeDecoder(backend, config, checkpoint, { ...size, tiles });
      const frames = await collect(decoder.decodeClip(latentsOf(goldens)));
      const error = relativeRms(clipOf(frames), await tensors.read('video'));
      expect(error).toBeLessThan(tolerance);
      expect(ownBytes(backend)).toBe(before);
      const plan = await measureDecoder(config, size, tiles);
      const { runtime } = backend.counters().categories;
      const took = `${backend.peakBytes} of ${plan.peak} bytes`;
      console.log(`${rows}×${columns}: ${error.toExponential(1)}, ${took}`);
      console.log(`runtime ${runtime?.peak} of ${plan.runtime}`);
      expect(backend.peakBytes).toBeLessThanOrEqual(plan.peak);
    },
  );

  test('cancelling works within a frame and frees everything', async () => {
    const { config, checkpoint, size } = goldens;
    const before = ownBytes(backend);
    const stop = new AbortController();
    let framesDone = 0;
    const decoder = await createTiledVaeDecoder(backend, config, checkpoint, {
      ...size,
      tiles: { rows: 1, columns: 2, overlap: 4 },
      signal: stop.signal,
      onTile: () => {
        framesDone += 1;
        // By a message, as from a button: the loop must let it in.
        if (framesDone === 3) setTimeout(() => stop.abort(new Error('enough')));
      },
    });
    await expect(collect(decoder.decodeClip(latentsOf(goldens)))).rejects.toThrow('enough');
    expect(framesDone).toBeLessThanOrEqual(4);
    expect(ownBytes(backend)).toBe(before);
  });
});
