import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ErrorCode, KinoraError } from '../contract';
import { KinoraDatabase } from './database';
import { gpuLock, predictionLock } from './locks';
import { Queue } from './queue';
import { PredictionStore } from './store';
import { cleanUp } from './testing/clean-up';
import { FakeEngine, gate } from './testing/engine';
import { newInput } from './testing/input';
import { newRunner, soon } from './testing/runner';

let store: PredictionStore;
/** The tabs of a test. */
let tabs: Queue[] = [];

beforeEach(() => {
  store = new PredictionStore(new KinoraDatabase(`test-${crypto.randomUUID()}`));
});

afterEach(async () => {
  await expect.poll(() => tabs.some((tab) => tab.getSnapshot().active), soon).toBe(false);
  tabs = [];
  await cleanUp(store.database);
});

/** What one tab has: its engine and queue, over the tables and locks that all tabs share. */
function openTab() {
  const engine = new FakeEngine();
  const opened: string[] = [];
  const runner = newRunner(store, engine, opened);
  const queue = new Queue(runner);
  tabs.push(queue);
  const stopped: (string | null)[] = [];
  queue.onStopped((id) => stopped.push(id));
  return { engine, runner, queue, opened, stopped };
}

const inputs = (...seeds: readonly number[]) =>
  Promise.all(seeds.map((seed) => newInput({ seed, num_inference_steps: 1 })));

/** The seeds of all predictions in the order of their start, with how each ended. */
async function made(): Promise<string[]> {
  const begun = (await store.list()).filter(({ status }) => status !== 'created').reverse();
  return begun.map(({ parameters, status }) => `${parameters.seed} ${status}`);
}

/** Adds requests that no tab has heard of. */
async function enqueue(...seeds: readonly number[]): Promise<void> {
  const runner = newRunner(store, new FakeEngine());
  const asked = (await inputs(...seeds)).map((input) => runner.prepare(input));
  await store.enqueue(await Promise.all(asked));
}

const rows = async () => (await store.waiting()).map(({ prediction }) => prediction);
const waiting = async () => (await rows()).map(({ parameters }) => parameters.seed);

test('requests run one after the other, with the id of their entry and adapters of the library', async () => {
  const tab = openTab();
  const { opened, open } = gate();
  tab.engine.script = () => opened;
  const [first, second] = await inputs(1, 2);
  if (!first || !second) throw new Error('two inputs');
  const parameters = { ...second.parameters, loras: [{ path: 'swing', scale: 1 }] };
  const withLora = { ...second, parameters, loras: [{ name: 'swing', file: null }] };
  expect(await tab.queue.add([first, withLora])).toBe(true);
  await expect.poll(waiting, soon).toEqual([2]);
  const [entry] = await store.waiting();
  expect(entry?.source.thumbnail?.type).toBe('image/jpeg');
  // While the queue runs, a request waits.
  expect(await tab.queue.add(await inputs(3))).toBe(false);
  open();
  await expect.poll(made, soon).toEqual(['1 completed', '2 completed', '3 completed']);
  await expect.poll(() => tab.stopped.length, soon).toBe(1);
  expect(await waiting()).toEqual([]);
  expect(tab.opened).toEqual(['swing']);
  const source = await store.source(entry?.prediction.id ?? '');
  expect(await source?.loras[0]?.file?.text()).toBe('of the library');
  expect(tab.queue.getSnapshot().active).toBe(false);
});

test('what is wrong with a request is said before it is added: then nothing waits', async () => {
  const tab = openTab();
  const good = await newInput();
  const bad = { ...good, parameters: { ...good.parameters, duration: 4 } };
  await expect(tab.queue.add([good, bad])).rejects.toMatchObject({
    code: 'PARAMETER_INVALID',
  });
  const image = new Blob(['no image']);
  await expect(tab.queue.add([{ ...good, image }])).rejects.toMatchObject({
    code: 'IMAGE_UNREADABLE',
  });
  expect(await waiting()).toEqual([]);
  expect(await made()).toEqual([]);
});

test('the queue pauses after an entry that says so, and goes on when it is asked to', async () => {
  const tab = openTab();
  const { opened, open } = gate();
  tab.engine.script = () => opened;
  await tab.queue.add(await inputs(1, 2, 3));
  await expect.poll(waiting, soon).toEqual([2, 3]);
  const [second] = await rows();
  await store.dispatch(second?.id ?? '', { type: 'pauseAfter', on: true });
  open();
  await expect.poll(() => tab.stopped, soon).toEqual([second?.id]);
  expect(await made()).toEqual(['1 completed', '2 completed']);
  // A paused queue takes requests, and does not run them.
  expect(await tab.queue.add(await inputs(4))).toBe(false);
  expect(await waiting()).toEqual([3, 4]);
  await tab.queue.unpause();
  await expect.poll(() => tab.stopped.length, soon).toBe(2);
  expect(await waiting()).toEqual([]);
});

for (const [code, then] of [
  ['DEVICE_LOST', 'pauses'],
  ['PROMPT_REFUSED', 'goes on'],
] as const satisfies readonly (readonly [ErrorCode, string])[]) {
  test(`after a run that ended with ${code} the queue ${then}`, async () => {
    const tab = openTab();
    tab.engine.script = async ({ parameters }) => {
      if (parameters.seed === 1) throw new KinoraError(code);
    };
    await tab.queue.add(await inputs(1, 2));
    await expect.poll(() => tab.stopped.length, soon).toBe(1);
    if (then === 'goes on') {
      expect(await made()).toEqual(['1 failed', '2 completed']);
      return;
    }
    expect(await made()).toEqual(['1 failed']);
    expect(await tab.queue.pauseState()).toEqual({ reason: 'run', code });
    // Its entries are removed: the pause was meant for them.
    await store.remove((await rows()).map(({ id }) => id));
    expect(await tab.queue.add(await inputs(3))).toBe(true);
    await expect.poll(made, soon).toEqual(['1 failed', '3 completed']);
  });
}

test('an entry that cannot be started stays, and the queue is paused', async () => {
  const tab = openTab();
  const input = await newInput({ loras: [{ path: 'gone', scale: 1 }] });
  await tab.queue.add([{ ...input, loras: [{ name: 'gone', file: null }] }]);
  await expect
    .poll(() => tab.queue.pauseState(), soon)
    .toMatchObject({ reason: 'entry', error: { code: 'LORA_MISSING' } });
  expect(await waiting()).toHaveLength(1);
  expect(await made()).toEqual([]);
});

test('one tab runs the queue; a run that a person has started in it comes first', async () => {
  const [one, two] = [openTab(), openTab()];
  const { opened, open } = gate();
  one.engine.script = () => opened;
  await one.runner.start(await newInput({ seed: 9, num_inference_steps: 1 }));
  await one.queue.add(await inputs(1));
  expect(await two.queue.add(await inputs(2))).toBe(false);
  expect(await waiting()).toEqual([1, 2]);
  open();
  await expect.poll(made, soon).toEqual(['9 completed', '1 completed', '2 completed']);
  expect(two.engine.opened).toBe(0);
  // The first tab has stopped; what the second one adds now runs there.
  await expect.poll(() => one.stopped.length, soon).toBe(1);
  expect(await two.queue.add(await inputs(3))).toBe(true);
  await expect.poll(() => two.stopped.length, soon).toBe(1);
  expect(two.engine.opened).toBe(1);
});

test('of tabs that wake at once one begins; while another job has the GPU, its run waits', async () => {
  const job = gate();
  const gpu = navigator.locks.request(gpuLock, () => job.opened);
  const all = [openTab(), openTab(), openTab()];
  await enqueue(1, 2);
  for (const { queue } of all) queue.wake();
  await expect.poll(made, soon).toEqual(['1 processing']);
  const states = () => all.map(({ runner }) => runner.getSnapshot().status).sort();
  await expect.poll(states, soon).toEqual(['idle', 'idle', 'waiting']);
  expect(await waiting()).toEqual([2]);
  job.open();
  await gpu;
  await expect.poll(made, soon).toEqual(['1 completed', '2 completed']);
  expect(all.map(({ engine }) => engine.opened).sort()).toEqual([0, 0, 2]);
});

test('what waits when the page opens runs, unless it is paused', async () => {
  const tab = openTab();
  await tab.queue.pause();
  await enqueue(1, 2);
  tab.queue.wake();
  await expect.poll(() => tab.queue.getSnapshot().active, soon).toBe(false);
  expect(await made()).toEqual([]);
  await tab.queue.unpause();
  tab.queue.wake();
  await expect.poll(made, soon).toEqual(['1 completed', '2 completed']);
});

test('an entry that is edited is held: the next one runs, and it runs when the edit is over', async () => {
  const tab = openTab();
  const other = openTab();
  const { opened, open } = gate();
  tab.engine.script = () => opened;
  await tab.queue.add(await inputs(1, 2, 3));
  await expect.poll(waiting, soon).toEqual([2, 3]);
  const [entry] = await rows();
  const id = entry?.id ?? '';
  const release = await other.queue.hold(id);
  expect(await tab.queue.hold(id), 'two tabs do not edit one entry').toBeNull();
  open();
  await expect.poll(made, soon).toEqual(['1 completed', '3 completed']);
  await expect.poll(() => tab.queue.getSnapshot().held, soon).toBe(true);
  expect(tab.queue.getSnapshot().active).toBe(false);
  const [edited] = await inputs(20);
  if (edited) expect(await other.queue.replace(id, edited)).toBe(true);
  release?.();
  await expect.poll(made, soon).toEqual(['1 completed', '3 completed', '20 completed']);
  expect(tab.queue.getSnapshot().held).toBe(false);
  expect(await tab.queue.hold(id), 'its turn has come').toBeNull();
});

test('rows keep their order, and are moved to any place of it', async () => {
  const { queue } = openTab();
  await queue.pause();
  await enqueue(1, 2);
  await queue.add(await inputs(3, 4));
  expect(await waiting()).toEqual([1, 2, 3, 4]);
  const idOf = async (seed: number) =>
    (await rows()).find(({ parameters }) => parameters.seed === seed)?.id ?? '';
  for (const [seed, index, order] of [
    [4, 0, [4, 1, 2, 3]],
    [1, 2, [4, 2, 1, 3]],
    [4, 9, [2, 1, 3, 4]],
    [1, 1, [2, 1, 3, 4]],
    [2, 3, [1, 3, 4, 2]],
    [0, 0, [1, 3, 4, 2]],
  ] as const) {
    await queue.move(await idOf(seed), index);
    expect(await waiting()).toEqual(order);
  }
});

test('a row is duplicated behind itself, replaced in its place, removed and brought back', async () => {
  const { queue } = openTab();
  await enqueue(1, -1, 3);
  const id = (await rows())[1]?.id ?? '';
  await store.dispatch(id, { type: 'pauseAfter', on: true });
  await queue.duplicate(id);
  // A random seed is chosen when a run starts.
  expect(await waiting()).toEqual([1, -1, -1, 3]);
  expect((await rows()).map(({ pauseAfter = false }) => pauseAfter)).toEqual([
    ...[false, true, false, false],
  ]);
  const [edited] = await inputs(20);
  if (!edited) throw new Error('an input');
  expect(await queue.replace(id, { ...edited, imageName: 'b.png' })).toBe(true);
  expect(await waiting()).toEqual([1, 20, -1, 3]);
  expect((await store.waiting())[1]).toMatchObject({
    prediction: { id, pauseAfter: true },
    source: { imageName: 'b.png' },
  });
  const ids = (await rows()).map((row) => row.id);
  const removed = await store.remove(ids.slice(0, 3));
  expect(await waiting()).toEqual([3]);
  expect(await queue.replace(id, edited)).toBe(false);
  await store.restore(removed);
  expect(await waiting()).toEqual([1, 20, -1, 3]);
  expect((await store.source(id))?.imageName).toBe('b.png');
});

test('a row that was removed, or that another tab holds, is not started', async () => {
  const { runner } = openTab();
  await enqueue(9);
  const [row] = await rows();
  const id = row?.id ?? '';
  await navigator.locks.request(predictionLock(id), async () => {
    await expect(runner.startWaiting(id)).rejects.toMatchObject({ code: 'BUSY' });
  });
  expect(await store.remove([id])).toEqual([id]);
  await expect(runner.startWaiting(id)).rejects.toMatchObject({ code: 'IMAGE_MISSING' });
  expect(await made()).toEqual([]);
});
