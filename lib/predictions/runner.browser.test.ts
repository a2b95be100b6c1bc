import { expect, test } from 'vitest';
import { centred, KinoraError, parseParameters } from '../contract';
import { gpuLock, predictionLock } from './locks';
import { gate } from './testing/engine';
import { newInput } from './testing/input';
import { newPrediction, started } from './testing/prediction';
import { engine, runner, soon, store, withRunner } from './testing/runner';
import { listVideos, readVideo, writeVideo } from './videos';

withRunner();

test('the row exists with its seed before the engine starts, and ends with the video', async () => {
  const early: (string | undefined)[] = [];
  engine.script = async ({ id }) => {
    early.push((await store.get(id))?.status);
  };
  const events: string[] = [];
  const { id, ended } = await runner.start(await newInput(), ({ type }) => events.push(type));
  const created = await store.get(id);
  expect(id).toMatch(/^[0-9a-f]{32}$/);
  expect(created?.parameters.seed).toBeGreaterThanOrEqual(0);

  const end = await ended;
  if (end.status !== 'completed') throw new Error(`it ended ${end.status}`);
  expect(early).toEqual(['processing', 'processing', 'processing']);
  const steps = Array(3).fill(['estimate', 'step']).flat();
  expect(events).toEqual(['phase', 'preview', ...steps]);
  expect(engine.seen?.parameters.seed).toBe(created?.parameters.seed);
  expect(end.result.seed).toBe(created?.parameters.seed);
  expect((await readVideo(end.result.videoFile)).size).toBe(end.result.videoBytes);
  expect(await store.get(id)).toEqual(end);
  expect(runner.getSnapshot()).toEqual({ status: 'idle' });
  expect((await store.source(id))?.thumbnail?.type).toBe('image/jpeg');
});

test('progress is an external store, and a run holds its locks', async () => {
  const { opened, open } = gate();
  engine.script = () => opened;
  let changes = 0;
  const unsubscribe = runner.subscribe(() => {
    changes += 1;
  });
  const { id, ended } = await runner.start(await newInput());
  await expect.poll(() => runner.getSnapshot().status, soon).toBe('running');
  expect(runner.getSnapshot()).toBe(runner.getSnapshot());
  const held = async () => (await navigator.locks.query()).held?.map(({ name }) => name);
  expect(await held()).toEqual(expect.arrayContaining([gpuLock, predictionLock(id)]));
  await expect(runner.start(await newInput())).rejects.toMatchObject({ code: 'BUSY' });
  open();
  await ended;
  unsubscribe();
  expect(changes).toBeGreaterThanOrEqual(6);
  expect(await held()).not.toContain(gpuLock);
});

test('cancel ends a run with CANCELLED and leaves nothing of its video', async () => {
  const { opened, open } = gate();
  engine.script = () => opened;
  const { id, ended } = await runner.start(await newInput());
  await expect.poll(() => runner.getSnapshot().status, soon).toBe('running');
  runner.cancel();
  expect(runner.getSnapshot()).toMatchObject({ ending: 'cancel' });
  open();
  expect(await ended).toMatchObject({ id, status: 'failed', error: { code: 'CANCELLED' } });
  expect(await listVideos()).toEqual([]);
  expect(runner.getSnapshot().status).toBe('idle');
  expect(engine.closed).toBe(0);
});

test('while another tab holds the GPU lock, a run waits and can be cancelled', async () => {
  const { opened, open } = gate();
  const other = navigator.locks.request(gpuLock, () => opened);
  const { id, ended } = await runner.start(await newInput());
  await expect
    .poll(() => runner.getSnapshot(), soon)
    .toMatchObject({ status: 'waiting', elsewhere: true });
  expect((await store.get(id))?.status).toBe('processing');
  runner.cancel();
  expect(await ended).toMatchObject({ status: 'failed', error: { code: 'CANCELLED' } });
  expect(engine.opened).toBe(0);

  const second = await runner.start(await newInput());
  await expect.poll(() => runner.getSnapshot(), soon).toMatchObject({ elsewhere: true });
  open();
  await other;
  expect((await second.ended).status).toBe('completed');
});

test('a failure is stored with its remedy; the engine is closed only after a fatal one', async () => {
  engine.script = async () => {
    throw new KinoraError('LATENTS_NOT_FINITE', 'The latents became NaN at step 1.');
  };
  const first = await (await runner.start(await newInput())).ended;
  expect(first).toMatchObject({
    status: 'failed',
    error: { code: 'LATENTS_NOT_FINITE', message: 'The latents became NaN at step 1.' },
  });
  expect(engine.closed).toBe(0);

  engine.script = async ({ id }) => {
    await writeVideo(`${id}.mp4`, new Blob(['half']));
    throw new KinoraError('OUT_OF_MEMORY');
  };
  const second = await (await runner.start(await newInput())).ended;
  expect(second).toMatchObject({ status: 'failed', error: { code: 'OUT_OF_MEMORY' } });
  expect(engine.closed).toBe(1);
  expect(await listVideos()).toEqual([]);
});

test('a worker that crashes ends the run', async () => {
  engine.script = () => new Promise(() => {});
  const { ended } = await runner.start(await newInput());
  await expect.poll(() => runner.getSnapshot().status, soon).toBe('running');
  engine.crash(new KinoraError('INTERNAL', 'The engine stopped unexpectedly.'));
  expect(await ended).toMatchObject({ status: 'failed', error: { code: 'INTERNAL' } });
  expect(engine.closed).toBe(1);
});

test('when the row cannot be made, nothing starts and the next run can', async () => {
  store.database.close();
  await expect(runner.start(await newInput())).rejects.toMatchObject({ code: 'STORAGE_BLOCKED' });
  expect(engine.opened).toBe(0);
  expect(runner.getSnapshot().status).toBe('idle');
  await store.database.open();
  expect((await (await runner.start(await newInput())).ended).status).toBe('completed');
});

test('the next page finds an interrupted run, which runs again with the same input', async () => {
  const lora = { name: 'style.safetensors', file: new Blob(['lora bytes']) };
  const requested = await newInput({
    loras: [{ path: 'style.safetensors', scale: 1.5 }],
    seed: 77,
  });
  // The page was closed: its row exists, but nothing holds its lock.
  const id = 'ab'.repeat(16);
  const parameters = parseParameters(requested.parameters);
  const options = { lastImage: { name: 'end.png', framing: { ...centred, zoom: 2 } } };
  await store.create(newPrediction({ id, profile: 'ultra-fast', parameters, options }), {
    image: requested.image,
    imageName: 'still.png',
    lastImage: requested.image,
    loras: [lora],
  });
  await store.dispatch(id, { ...started, seed: 77 });
  await writeVideo(`${id}.mp4.part`, new Blob(['half a video']));

  expect(await runner.recover()).toBe(1);
  expect(await store.get(id)).toMatchObject({ status: 'failed', error: { code: 'INTERRUPTED' } });
  expect(await listVideos()).toEqual([]);

  // The person may have chosen another backend since.
  const again = await runner.runAgain(id, { backend: 'webgpu' });
  expect(again.id).not.toBe(id);
  const end = await again.ended;
  expect(end).toMatchObject({ status: 'completed', profile: 'ultra-fast', result: { seed: 77 } });
  expect(engine.seen).toMatchObject({
    profile: 'ultra-fast',
    device: { backend: 'webgpu' },
    options,
  });
  expect(engine.seen?.lastImage?.size).toBe(requested.image.size);
  expect(engine.seen?.loras[0]).toMatchObject({ name: 'style.safetensors', scale: 1.5 });
  expect(await engine.seen?.loras[0]?.file.text()).toBe('lora bytes');
  expect(new Uint8Array((await engine.seen?.image.arrayBuffer()) ?? [])).toEqual(
    new Uint8Array(await requested.image.arrayBuffer()),
  );
  const standard = await runner.runAgain(again.id, {}, { profile: 'standard' });
  expect(await standard.ended).toMatchObject({ profile: 'standard', result: { seed: 77 } });
});

test('finishing early keeps the steps so far', async () => {
  const { opened, open } = gate();
  engine.script = () => opened;
  const { ended } = await runner.start(await newInput());
  await expect.poll(() => runner.getSnapshot().status, soon).toBe('running');
  await runner.finishEarly();
  open();
  const { num_inference_steps: steps } = (await newInput()).parameters;
  const result = { finishedEarly: true, lastStep: { step: 1, steps } };
  expect(await ended).toMatchObject({ status: 'completed', result });
});

test('invalid input creates no row and starts nothing', async () => {
  await expect(runner.start(await newInput({ prompt: ' ' }))).rejects.toMatchObject({
    code: 'PROMPT_EMPTY',
  });
  await expect(runner.start(await newInput({ duration: 4 }))).rejects.toMatchObject({
    code: 'PARAMETER_INVALID',
    message: 'duration must be a whole number from 5 to 10.',
  });
  const unfit = await newInput({ loras: [{ path: 'a', scale: 1 }] });
  await expect(runner.start(unfit)).rejects.toMatchObject({ code: 'REQUEST_INVALID' });
  const image = new Blob(['no image']);
  await expect(runner.start({ ...(await newInput()), image })).rejects.toMatchObject({
    code: 'IMAGE_UNREADABLE',
  });
  expect(await store.list()).toEqual([]);
  expect(engine.opened).toBe(0);
  expect(runner.getSnapshot().status).toBe('idle');
});

test('a video that cannot be removed does not hide why the run failed', async () => {
  let writing: FileSystemWritableFileStream | undefined;
  engine.script = async ({ id }) => {
    await writeVideo(`${id}.mp4`, new Blob(['half']));
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('videos');
    // An open writer locks the file.
    writing = await (await folder.getFileHandle(`${id}.mp4`)).createWritable();
    throw new KinoraError('LATENTS_NOT_FINITE');
  };
  const { id, ended } = await runner.start(await newInput());
  expect(await ended).toMatchObject({ id, error: { code: 'LATENTS_NOT_FINITE' } });
  expect(await store.get(id)).toMatchObject({ status: 'failed' });
  expect(await listVideos()).toContain(`${id}.mp4`);
  await writing?.abort();
  await runner.recover();
  expect(await listVideos()).toEqual([]);
});

test('the options go to the engine, and again with the next run, as does what it continues', async () => {
  const options = { safetyChecker: true, promptOptimizer: true };
  const { id, ended } = await runner.start({ ...(await newInput()), options, continues: 'a' });
  expect(await ended).toMatchObject({
    options,
    continues: 'a',
    result: { safety: { status: 'clear' } },
  });
  const again = await runner.runAgain(id);
  expect(await again.ended).toMatchObject({ continues: 'a' });
  expect(engine.seen).toMatchObject({ id: again.id, options });
});

test('a finished video is checked later; one that is refused then is deleted with its prediction', async () => {
  const { id, ended } = await runner.start(await newInput());
  const end = await ended;
  if (end.status !== 'completed') throw new Error(`it ended ${end.status}`);
  expect(end.result.safety?.status).toBe('off');
  const { signal } = new AbortController();
  const safety = await runner.check(id, signal);
  expect(safety).toMatchObject({ status: 'clear', score: 0.25 });
  expect(engine.checked).toMatchObject([
    { videoFile: end.result.videoFile, prompts: [end.parameters.prompt, ''] },
  ]);
  expect(await store.get(id)).toEqual({ ...end, result: { ...end.result, safety } });

  engine.checkError = new KinoraError('PROMPT_REFUSED');
  await expect(runner.check(id, signal)).rejects.toMatchObject({ code: 'PROMPT_REFUSED' });
  expect(await store.get(id)).toBeUndefined();
  const refused = runner.start(await newInput({ prompt: 'a naked 12 year old girl' }));
  await expect(refused).rejects.toMatchObject({ code: 'PROMPT_REFUSED' });
  expect(await store.list()).toEqual([]);
});
