/** @module-tag full */
import { expect, test } from 'vitest';
import type { ProgressEvent } from '../../lib/contract';
import { type Backend, createBackend, probeDevice } from '../../lib/gpu';
import { linearKernel } from '../../lib/gpu/kernels/linear';
import { readRecord, recordId } from '../../lib/gpu/kernels/record';
import { linearShape } from '../../lib/gpu/kernels/tuned-shapes';
import { KinoraDatabase } from '../../lib/predictions/database';
import { loadSetting } from '../../lib/predictions/settings';
import { EngineKernels } from './kernels';

const { signal } = new AbortController();

async function stored() {
  const id = recordId(await probeDevice(), navigator.userAgent);
  return readRecord(await loadSetting(new KinoraDatabase(), id));
}

/** What an engine on a device of its own makes of the setting. */
async function used(work: (kernels: EngineKernels, backend: Backend) => Promise<void>) {
  const backend = await createBackend('webgpu');
  const events: ProgressEvent[] = [];
  const kernels = new EngineKernels();
  await kernels.use(backend, 'exact', (event) => events.push(event), signal);
  const choice = backend.kernels?.choice ?? null;
  await work(kernels, backend);
  await backend.dispose();
  return { choice, events };
}

test('the first kernels with right numbers are used and remembered; one that loses the GPU is not used again', {
  timeout: 400_000,
}, async () => {
  const first = await used(async (kernels, backend) => {
    expect(kernels.recordOf(backend)).toMatchObject({ mode: 'runtime', keys: [] });
    // Nothing was set, and the GPU is emulated.
    await kernels.use(backend, undefined, () => undefined, signal);
    expect(backend.kernels).toBeNull();
  });
  expect(first.choice).toMatchObject({ mode: 'exact', linear: { shared: 'f32' } });
  expect(first.events.at(-1)).toMatchObject({ type: 'tuning' });
  const record = await stored();
  expect(record).toMatchObject({ trying: null, losses: 0, peak: null });
  const { exact } = record?.modes ?? {};
  expect(exact?.winners.linear).toMatchObject({ variant: first.choice?.linear, rate: null });

  const second = await used(async (kernels, backend) => {
    const { compute } = backend;
    if (!compute || !first.choice?.linear) throw new Error('there are no kernels');
    const running = [linearKernel(first.choice.linear, linearShape('timed'))];
    Object.defineProperty(compute, 'unfinished', { value: running });
    await kernels.lost(backend);
  });
  expect(second).toMatchObject({ choice: first.choice, events: [] });
  const lost = await stored();
  expect(lost).toMatchObject({ losses: 1, modes: {} });
  expect(Object.keys(lost?.excluded ?? {})).toEqual([exact?.winners.linear?.key]);

  const third = await used(async (kernels, backend) => {
    await kernels.lost(backend);
  });
  expect(third.choice?.linear).not.toEqual(first.choice?.linear);
  expect(third.choice?.attention).toEqual(first.choice?.attention);
  // The second loss: the runtime computes everything.
  expect((await used(async () => undefined)).choice).toBeNull();
});
