import { expect, test } from 'vitest';
import { createVaeDecoder, encodeFirstFrame } from '../../models/wan/vae';
import { collect, latentsOf, openGoldens } from '../../models/wan/vae/testing/goldens';
import { nodeBackend } from '../../models/wan22/testing/model';
import { diskFolder, goldens as root } from '../../weights/testing/files';
import { relativeRms } from '..';

const goldens = await openGoldens(diskFolder(root), diskFolder(`${root}model`));

test('the decoder gives what the runtime gives', async () => {
  const { config, checkpoint, size } = goldens;
  const run = async (runtimeOnly: boolean) => {
    const backend = nodeBackend();
    backend.runtimeOnly = runtimeOnly;
    const decoder = await createVaeDecoder(backend, config, checkpoint, size);
    const t = performance.now();
    const frames = await collect(decoder.decodeClip(latentsOf(goldens)));
    console.log(runtimeOnly, performance.now() - t, backend.counters().liveBytes);
    decoder.dispose();
    expect(backend.counters().liveBytes).toBe(0);
    return frames;
  };
  const [ours, theirs] = [await run(false), await run(true)];
  for (const [i, frame] of ours.entries()) {
    const error = relativeRms(frame, theirs[i] as Float32Array);
    if (i < 6) console.log(i, error);
    expect(error).toBeLessThan(1e-5);
  }
});

test('the encoder gives what the runtime gives', async () => {
  const { config, checkpoint, image } = goldens;
  const run = async (runtimeOnly: boolean) => {
    const backend = nodeBackend();
    backend.runtimeOnly = runtimeOnly;
    return encodeFirstFrame(backend, config, checkpoint, image);
  };
  expect(relativeRms(await run(false), await run(true))).toBeLessThan(1e-5);
});
