import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { locateTensors } from '../formats/located';
import { openTensorFile } from '../formats/tensor-file';
import { HubClient, hubByteSource, systemClock } from '../hub';
import { safetensorsBytes } from '../testing/files';
import { startHub } from '../testing/hub/server';
import { installComponent } from './install';
import { keepStart } from './kept-start';
import { diskStore } from './testing/disk';

const repository = 'owner/model';
const name = 'model.safetensors';
const shape = [3072, 1024];

/** Bytes per millisecond of the line. Its clock goes on with what comes over it. */
const bytesPerMs = 1000;

test('on a line of 1 MB/s something is safe every few seconds, and a pause costs a moment', async () => {
  const data = new Float32Array(3072 * 1024).map((_, i) => i % 1000);
  const bytes = safetensorsBytes({ weight: { shape, data } });
  const hub = await startHub();
  const root = await mkdtemp(path.join(tmpdir(), 'kinora-slow-'));
  try {
    hub.repositories.put(repository, name, bytes);
    let arrived = 0;
    const clock = { ...systemClock, now: () => arrived / bytesPerMs };
    const client = new HubClient(hub.url, { clock });
    const remote = await client.file({ repository, path: name, revision: 'main' });
    const onBytes = (count: number) => {
      arrived += count;
    };
    const abort = new AbortController();
    const install = async (signal: AbortSignal, onSafe: (bytesDone: number) => void) => {
      const hubSource = hubByteSource(client, remote, { onBytes });
      const source = await keepStart(diskStore(root), 0, hubSource);
      await installComponent({
        folder: diskStore(root),
        component: 'transformer',
        precision: 'int8',
        recipe: {
          component: 'transformer',
          tensors: [{ name: 'weight', source: 'weight', shape, form: 'int8', pack: 'a.bin' }],
        },
        sources: [source],
        tensors: locateTensors([await openTensorFile(source)]),
        signal,
        now: clock.now,
        onProgress: ({ bytesDone }) => onSafe(bytesDone),
      });
    };
    const gaps: number[] = [];
    let last = 0;
    const first = install(abort.signal, (bytesDone) => {
      gaps.push(clock.now() - last);
      last = clock.now();
      if (bytesDone > 6 * 2 ** 20) abort.abort();
    });
    await expect(first).rejects.toThrow();
    expect(gaps.length).toBeGreaterThan(3);
    expect(Math.max(...gaps)).toBeLessThan(4000);
    await systemClock.sleep(60); // What the server has written already is counted as well.
    await install(new AbortController().signal, () => undefined);
    // An open unit of 1 MiB, and four ranges of at most 512 KiB.
    expect(hub.served(name).bytesTwice).toBeLessThan(3.1 * 2 ** 20);
  } finally {
    await hub.close();
    await rm(root, { recursive: true, force: true });
  }
});
