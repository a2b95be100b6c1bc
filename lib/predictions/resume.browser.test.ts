/** @module-tag full */
import { beforeEach, expect, test, vi } from 'vitest';
import { type ErrorCode, KinoraError, type Prediction } from '../contract';
import { gpuLock, predictionLock } from './locks';
import { listRuns, openRunFiles } from './run-files';
import type { RunState } from './run-state';
import { hasLatents, savedRunBytes, sweepRuns } from './saved-runs';
import { gate } from './testing/engine';
import { newInput } from './testing/input';
import { newPrediction, resultOf } from './testing/prediction';
import { engine, runner, soon, store, withRunner } from './testing/runner';
import { listVideos, readVideo } from './videos';

withRunner();
beforeEach(() => {
  engine.saves = true;
});

/** Starts a run that stops before its second step, until the returned function is called. */
async function runToSecondStep() {
  const { opened, open } = gate();
  let steps = 0;
  engine.script = async () => {
    steps += 1;
    if (steps === 2) await opened;
  };
  const { id, ended } = await runner.start(await newInput({ seed: 7 }));
  await expect.poll(async () => (await store.get(id))?.status, soon).toBe('processing');
  await expect.poll(() => steps, soon).toBe(2);
  return { id, ended, open };
}

/** A run that ended in its second step, as far as the engine is concerned with `code`. */
async function interruptedBy(code: ErrorCode): Promise<Prediction> {
  let steps = 0;
  engine.script = async () => {
    steps += 1;
    if (steps >= 2) throw new KinoraError(code);
  };
  const { ended } = await runner.start(await newInput({ seed: 7 }));
  const end = await ended;
  engine.script = async () => {};
  return end;
}

const idsOfRuns = async () => (await listRuns()).map(({ id }) => id);

test('a run that is paused ends with its checkpoint; resumed, it completes', async () => {
  const { id, ended, open } = await runToSecondStep();
  await runner.pause();
  expect(runner.getSnapshot()).toMatchObject({ ending: 'pause' });
  open();
  expect(await ended).toMatchObject({
    status: 'interrupted',
    error: { code: 'PAUSED' },
    checkpoint: { clip: 0, step: 2, steps: 3 },
  });
  expect(runner.getSnapshot().status).toBe('idle');
  expect(await idsOfRuns()).toEqual([id]);

  const steps: number[] = [];
  const again = await runner.continueRun(id, 'resume', { memoryBudget: 1e9 }, (event) => {
    if (event.type === 'step') steps.push(event.step);
  });
  expect(await store.get(id)).toMatchObject({ status: 'processing' });
  expect(await again.ended).toMatchObject({ id, status: 'completed', result: { resumes: 1 } });
  expect(steps).toEqual([3]);
  expect(engine.seen).toMatchObject({
    continuation: 'resume',
    device: { backend: 'wasm', memoryBudget: 1e9 },
  });
  expect(engine.seen?.parameters.seed).toBe(7);
  expect(await hasLatents(id)).toBe(true);
});

test('a run that cannot be saved is not paused', async () => {
  engine.saves = false;
  const { ended, open } = await runToSecondStep();
  const problem = { problem: 'unsaved', sentence: 'The disk is full.' } as const;
  engine.report?.({ type: 'checkpoint-problem', ...problem });
  await runner.pause();
  expect(runner.getSnapshot()).toMatchObject({
    ending: null,
    progress: { checkpointProblem: problem },
  });
  open();
  expect((await ended).status).toBe('completed');
});

test('a lost device leaves a run to resume; a cancelled one leaves nothing', async () => {
  const lost = await interruptedBy('DEVICE_LOST');
  expect(lost).toMatchObject({ status: 'interrupted', checkpoint: { step: 1 } });
  const invalid = await interruptedBy('LATENTS_NOT_FINITE');
  expect(invalid.status).toBe('failed');
  const { ended, open } = await runToSecondStep();
  runner.cancel();
  open();
  expect(await ended).toMatchObject({ status: 'failed', error: { code: 'CANCELLED' } });
  expect(await idsOfRuns()).toEqual([lost.id]);
});

test('an engine in the place of one that lost its GPU hears what that one was asked for', async () => {
  const { opened, open } = gate();
  let steps = 0;
  engine.script = async () => {
    steps += 1;
    if (steps !== 2) return;
    await opened;
    throw new KinoraError('DEVICE_LOST');
  };
  const { ended } = await runner.start(await newInput({ seed: 7 }));
  await expect.poll(() => steps, soon).toBe(2);
  await runner.finishEarly();
  open();
  expect(await ended).toMatchObject({
    status: 'completed',
    result: { finishedEarly: true, resumes: 1 },
  });
});

test('a GPU that comes back only after a while is waited for; a second loss in a row ends the run', async () => {
  const losses = [2, 4, 4];
  engine.script = async () => {
    const { progress } = runner.getSnapshot() as Extract<RunState, { status: 'running' }>;
    if (progress.step + 1 !== losses[0]) return;
    losses.shift();
    throw new KinoraError('DEVICE_LOST');
  };
  engine.outcomes.push('no-adapter', 'no-adapter', 'no-adapter');
  const { ended } = await runner.start(await newInput({ seed: 7, num_inference_steps: 5 }));
  const row = await ended;
  expect(engine.outcomes).toEqual([]);
  expect(losses).toEqual([]);
  expect(row).toMatchObject({
    status: 'interrupted',
    checkpoint: { step: 3 },
    error: {
      code: 'DEVICE_LOST',
      message: 'The GPU was lost twice, and no step was finished in between.',
    },
  });
  // The rest is computed elsewhere, and the record says where.
  engine.script = async () => {};
  const resumed = await runner.continueRun(row.id, 'resume', { backend: 'webgpu' });
  expect(await resumed.ended).toMatchObject({ status: 'completed', backend: 'webgpu' });
  expect(engine.seen).toMatchObject({
    device: { backend: 'webgpu' },
    checkpoint: { step: 3 },
  });
});

test('a run of another tab that is gone is interrupted at once, also one that began later', async () => {
  const { id } = await interruptedBy('OUT_OF_MEMORY');
  const end = runner.watch();
  const { opened, open } = gate();
  const other = navigator.locks.request(predictionLock(id), () => opened);
  await store.dispatch(id, { type: 'resumed' });
  await expect
    .poll(async () => (await navigator.locks.query()).pending?.map(({ name }) => name), soon)
    .toContain(predictionLock(id));
  expect(await store.get(id)).toMatchObject({ status: 'processing' });
  // Its tab is closed.
  open();
  await other;
  await expect
    .poll(() => store.get(id), soon)
    .toMatchObject({
      status: 'interrupted',
      error: { code: 'INTERRUPTED' },
    });
  end();
});

test('the next page finds the run of a page that is gone, which can be finished early', async () => {
  const { id } = await interruptedBy('DEVICE_LOST');
  // As a closed page leaves it.
  await store.dispatch(id, { type: 'resumed' });
  await openRunFiles('ab'.repeat(16)).write('state-a', new Blob(['of no row']));
  await openRunFiles('served-job').write('state-a', new Blob(['of an API job']));
  expect(await runner.recover()).toBe(1);
  expect(await store.get(id)).toMatchObject({
    status: 'interrupted',
    error: { code: 'INTERRUPTED' },
    checkpoint: { step: 1 },
  });
  expect((await idsOfRuns()).sort()).toEqual([id, 'served-job'].sort());

  const { ended } = await runner.continueRun(id, 'finish');
  expect(await ended).toMatchObject({ status: 'completed', result: { finishedEarly: true } });
  expect(engine.seen?.continuation).toBe('finish');
});

test('an interrupted run survives its deletion until the trash is emptied', async () => {
  const { id } = await interruptedBy('OUT_OF_MEMORY');
  expect(await store.remove([id])).toEqual([id]);
  await runner.recover();
  expect(await store.restore([id])).toEqual([id]);
  expect(await idsOfRuns()).toEqual([id]);
  await store.remove([id]);
  await store.purge([id]);
  expect(await idsOfRuns()).toEqual([]);
});

test('who cancels a resumed run while it waits for the GPU has it as it was', async () => {
  const before = await interruptedBy('DEVICE_LOST');
  const { opened, open } = gate();
  const other = navigator.locks.request(gpuLock, () => opened);
  const { ended } = await runner.continueRun(before.id, 'resume');
  await expect.poll(() => runner.getSnapshot(), soon).toMatchObject({ elsewhere: true });
  runner.cancel();
  expect(await ended).toEqual({ ...before, interruptedAt: expect.any(String) });
  expect(await idsOfRuns()).toEqual([before.id]);
  open();
  await other;
});

test('a run is resumed also where its lock is held for a moment, as a sweep does', async () => {
  const { id } = await interruptedBy('DEVICE_LOST');
  const { opened, open } = gate();
  const sweeping = navigator.locks.request(predictionLock(id), () => opened);
  const resumed = runner.continueRun(id, 'resume');
  resumed.catch(() => {});
  setTimeout(open, 300);
  expect(await (await resumed).ended).toMatchObject({ status: 'completed' });
  await sweeping;
});

test('what fails while the page is being left is not noted, unless the page stays', async () => {
  const { id } = await interruptedBy('DEVICE_LOST');
  const { opened, open } = gate();
  engine.script = async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    window.dispatchEvent(new Event('beforeunload'));
    open();
    throw new KinoraError('FILE_UNREADABLE');
  };
  try {
    const { ended } = await runner.continueRun(id, 'resume');
    await opened;
    await vi.advanceTimersByTimeAsync(9000);
    expect(await store.get(id)).toMatchObject({ status: 'processing' });
    await vi.advanceTimersByTimeAsync(2000);
    vi.useRealTimers();
    expect(await ended).toMatchObject({
      status: 'interrupted',
      error: { code: 'FILE_UNREADABLE' },
    });
  } finally {
    vi.useRealTimers();
  }
});

test('two tabs do not resume one run', async () => {
  const { id } = await interruptedBy('DEVICE_LOST');
  await navigator.locks.request(predictionLock(id), () =>
    expect(runner.continueRun(id, 'resume')).rejects.toMatchObject({ code: 'BUSY' }),
  );
  expect(await (await runner.continueRun(id, 'resume')).ended).toMatchObject({
    status: 'completed',
  });
  await expect(runner.continueRun(id, 'resume')).rejects.toMatchObject({ code: 'BUSY' });
  expect(runner.getSnapshot().status).toBe('idle');
});

test('a refined video replaces the one of the tiny decoder; a failure leaves that one', async () => {
  const first = await (await runner.start(await newInput({ seed: 7 }))).ended;
  if (first.status !== 'completed') throw new Error(`it ended ${first.status}`);
  const { id } = first;
  engine.script = async () => {
    throw new KinoraError('OUT_OF_MEMORY');
  };
  await expect((await runner.refine(id)).ended).rejects.toMatchObject({ code: 'OUT_OF_MEMORY' });
  expect(await store.get(id)).toEqual(first);
  expect(await listVideos()).toEqual([first.result.videoFile]);
  expect(await hasLatents(id)).toBe(true);

  engine.script = async () => {};
  const refined = await (await runner.refine(id)).ended;
  if (refined.status !== 'completed') throw new Error(`it ended ${refined.status}`);
  expect(engine.seen).toMatchObject({ continuation: 'refine', options: { decoder: 'full' } });
  expect(refined.result).toMatchObject({
    applied: { decoder: 'full' },
    timings: { denoise: 2, total: 2.5 },
  });
  expect(await listVideos()).toEqual([refined.result.videoFile]);
  expect((await readVideo(refined.result.videoFile)).size).toBe(refined.result.videoBytes);
});

test('a video that must not be delivered once it is refined goes with all that is kept of it', async () => {
  const { id } = await (await runner.start(await newInput({ seed: 7 }))).ended;
  engine.script = async () => {
    throw new KinoraError('PROMPT_REFUSED');
  };
  await expect((await runner.refine(id)).ended).rejects.toMatchObject({ code: 'PROMPT_REFUSED' });
  expect(await store.get(id)).toBeUndefined();
  expect(await listVideos()).toEqual([]);
  expect(await idsOfRuns()).toEqual([]);
});

test('the newest latents are kept within the limit; interrupted runs do not count', async () => {
  const applied = { decoder: 'tiny' };
  const ids: string[] = [];
  for (const _ of [0, 1, 2]) {
    const { id } = newPrediction();
    ids.push(id);
    const result = { ...resultOf(id), applied };
    const row = { ...newPrediction({ id }), status: 'completed', result } as unknown as Prediction;
    await store.create(row, { image: new Blob(), imageName: '', loras: [] });
    await openRunFiles(id).write('clip-0', new Blob([new Uint8Array(100)]));
    // Times of files are whole milliseconds.
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  const { id } = await interruptedBy('DEVICE_LOST');
  await sweepRuns(store, 250);
  expect((await idsOfRuns()).sort()).toEqual([ids[1], ids[2], id].sort());
  expect(await savedRunBytes(store)).toEqual({ latents: 200, interrupted: 1 });
  await sweepRuns(store, 0);
  expect(await idsOfRuns()).toEqual([id]);
});
