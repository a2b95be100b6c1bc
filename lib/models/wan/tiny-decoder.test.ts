import { expect, test } from 'vitest';
import { diskFolder, openGolden, goldens as root } from '../../weights/testing/files';
import { nodeBackend } from './testing/model';
import { createTinyDecoder } from './tiny-decoder';
import { decodeAll, openGoldens } from './vae/testing/goldens';

const goldens = await openGoldens(diskFolder(root), diskFolder(`${root}model`));
const backend = nodeBackend();

test('a TGrow with surplus rows counts from its end', async () => {
  const checkpoint = await openGolden('formats/tiny-decoder-base.safetensors');
  const name = 'decoder.13.conv.weight';
  const [rows = 0, channels = 0] = checkpoint.shape(name);
  const surplus = {
    ...checkpoint,
    shape: (key: string) =>
      key === name ? [rows + channels, channels, 1, 1] : checkpoint.shape(key),
    read: async (key: string) => {
      const data = await checkpoint.read(key);
      if (key !== name) return data;
      const padded = new Float32Array(data.length + channels * channels).fill(9);
      padded.set(data, channels * channels);
      return padded;
    },
  };
  const decoders = [
    await createTinyDecoder(backend, checkpoint, goldens.size),
    await createTinyDecoder(backend, surplus, goldens.size),
  ];
  const clips: Float32Array[][] = [];
  for (const decoder of decoders) {
    clips.push(await decodeAll(decoder, goldens));
    decoder.dispose();
  }
  expect(clips[1]).toEqual(clips[0]);
});

test('a file of another kind is refused', async () => {
  const before = backend.counters().liveBytes;
  const vae = createTinyDecoder(backend, goldens.checkpoint, goldens.size);
  await expect(vae).rejects.toMatchObject({ code: 'TENSOR_MISSING' });
  const golden = await openGolden('formats/tiny-decoder-base.safetensors');
  const partial = {
    ...golden,
    has: (key: string) => key === 'decoder.0.weight' || golden.has(key),
  };
  const mixed = createTinyDecoder(backend, partial, goldens.size);
  await expect(mixed).rejects.toMatchObject({ code: 'TENSOR_MISSING' });
  expect(backend.counters().liveBytes).toBe(before);
});
