/** @module-tag full */
import { expect, test } from 'vitest';
import { relativeRms } from '../gpu';
import { WanModel } from '../models/wan/model';
import { openStoredParts } from '../models/wan/parts';
import { goldenBytes, goldenId, goldenRepository } from '../models/wan/testing/golden-model';
import { nodeBackend } from '../models/wan/testing/model';
import { clipOf, collect } from '../models/wan/vae/testing/goldens';
import { storedModel } from '../pipeline/profiles';
import { createSourceHash } from '../weights/store/hashes';
import { openGolden } from '../weights/testing/files';
import { libraryTests, modelOf, partOf } from './testing/library';

const now = libraryTests();
const id = goldenId;
const path = 'MG-LightVAE.pth';
const choice = `${goldenRepository}/${path}`;
/** Of the tensors that decode, and of the zip headers between them at most. */
const needed = { tensors: 641_728, headers: 75 * 256 };
const unitLimit = 64 * 1024;
/** More than the tables of the archive and the local headers of its records. */
const header = 60_000;

async function publishLight(): Promise<void> {
  const { repositories } = now().hub;
  repositories.put(goldenRepository, path, await goldenBytes('formats/light-decoder.pth'));
  const text = repositories.list(goldenRepository)?.get('kinora.json')?.bytes;
  const published = JSON.parse(new TextDecoder().decode(text));
  published.components.push({ id: 'light_decoder', faster: true });
  published.sources.push({
    component: 'light_decoder',
    fetched: needed.tensors,
    files: [{ repository: goldenRepository, path }],
  });
  repositories.put(goldenRepository, 'kinora.json', JSON.stringify(published));
}

test('the light decoder is fetched where it was chosen, its own bytes only, and goes on where it stopped', async () => {
  await publishLight();
  const library = await now().openModelTab();
  await library.download(id, 'int8', []);
  expect(storedModel(await modelOf(library)).decoders).toEqual(['full', 'tiny']);
  // Adding the model has read its header.
  expect(now().hub.served(path).bytes).toBeLessThan(header);

  const plan = await library.planDownload(id, 'int8', [choice]);
  expect(plan.parts.find(({ component }) => component === 'light_decoder')).toMatchObject({
    bytesTotal: needed.tensors,
  });
  const hash = await createSourceHash();
  let units = 0;
  const interrupted = now().openTab({
    unitLimit,
    startHash: () => ({
      hash: Object.assign(Object.create(hash), {
        update: async (bytes: Uint8Array) => {
          await hash.update(bytes.slice());
          if (++units === 5) void interrupted.pause(id);
        },
      }),
      close: () => undefined,
    }),
  });
  await interrupted.download(id, 'int8', [choice]);
  const paused = await partOf(interrupted, 'light_decoder');
  expect(paused).toMatchObject({ status: 'paused', pausedBy: 'user' });
  expect(paused.bytesDone).toBeGreaterThan(3 * unitLimit);
  const all = needed.tensors + needed.headers;
  expect(paused.bytesTotal).toBeGreaterThanOrEqual(needed.tensors);
  expect(paused.bytesTotal).toBeLessThan(all);

  now().hub.forget();
  const reloaded = now().openTab({ unitLimit });
  await reloaded.resume(id);
  expect(await partOf(reloaded, 'light_decoder')).toMatchObject({ status: 'complete' });
  // What is left, and the tables of the archive, which are read again.
  expect(now().hub.served(path).bytes).toBeLessThan(all - paused.bytesDone + header);

  expect(storedModel(await modelOf(reloaded)).decoders).toEqual(['full', 'light', 'tiny']);
  const { manifest } = await modelOf(reloaded);
  const model = new WanModel(await openStoredParts(manifest, now().folder(id)));
  const backend = nodeBackend();
  const golden = await openGolden('golden.safetensors');
  const [, , frames = 0, height = 0, width = 0] = golden.shape('final_latents');
  const decoded = await collect(
    model.decode(backend, {
      size: { frames, height, width },
      latents: await golden.read('final_latents'),
      decoder: 'light',
      tiles: 'full',
      signal: new AbortController().signal,
      onTile: () => undefined,
    }),
  );
  await backend.dispose();
  const expected = await (await openGolden('formats/light-decoder-golden.safetensors')).read(
    'video',
  );
  expect(relativeRms(clipOf(decoded), expected)).toBeLessThan(1e-4);
});

test('all of its bytes in one go are few more than those of its tensors', async () => {
  await publishLight();
  const library = await now().openModelTab();
  await library.download(id, 'int8', [choice]);
  expect(await partOf(library, 'light_decoder')).toMatchObject({ status: 'complete' });
  const { size } = new Blob([await goldenBytes('formats/light-decoder.pth')]);
  const { bytes, bytesTwice } = now().hub.served(path);
  expect(bytes).toBeLessThan(size - 150_000);
  expect(bytesTwice).toBeLessThan(header);
});
