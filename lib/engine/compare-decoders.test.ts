/** @module-tag full */
import { afterAll, expect, test } from 'vitest';
import { WanModel } from '../models/wan/model';
import { nodeBackend, openTiny } from '../models/wan/testing/model';
import { smoothImage } from '../models/wan/testing/video';
import { openComponent } from '../models/wan/wan-naming';
import { openTensorFile } from '../weights';
import { diskFile, goldens, openGolden } from '../weights/testing/files';
import { compareDecoders } from './compare-decoders';

const backend = nodeBackend();
afterAll(() => backend.dispose());

test('tiny and light are compared with what the full decoder makes of the same latents', async () => {
  const parts = await openTiny();
  const file = await openTensorFile(await diskFile(`${goldens}formats/light-decoder.pth`));
  const lightDecoder = openComponent('light_decoder', [file], parts.config);
  const tinyDecoder = await openGolden('formats/tiny-decoder-base.safetensors');
  const picture = smoothImage({ width: 64, height: 32 });
  const frames = Array.from({ length: 5 }, (_, f) => ({
    ...picture,
    data: picture.data.map((value) => value * (1 - f / 10)),
  }));
  const { signal } = new AbortController();
  const compare = (more: object) =>
    compareDecoders(new WanModel({ ...parts, ...more }), backend, frames, signal);

  const [full, light, tiny] = await compare({ lightDecoder, tinyDecoder });
  expect(full).toMatchObject({ decoder: 'full', psnr: null });
  expect(light?.decoder).toBe('light');
  expect(tiny?.decoder).toBe('tiny');
  for (const one of [light, tiny]) {
    expect(one?.psnr).toBeGreaterThan(0);
    expect(one?.psnr).toBeLessThan(30);
    expect(one?.seconds).toBeGreaterThan(0);
  }
  // The full decoder as a light one is the same network.
  const [, same] = await compare({ lightDecoder: parts.vae });
  expect(same?.psnr).toBeGreaterThan(100);
  await backend.releaseSessions();
  expect(backend.counters().liveBytes).toBe(0);
});
