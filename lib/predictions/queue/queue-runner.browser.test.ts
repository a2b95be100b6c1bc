import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ErrorCode, KinoraError } from '../../contract/errors';
import { readImageFile } from '../../video/image';
import { KinoraDatabase } from '../database';
import { queueLock } from '../locks';
import { Runner } from '../runner';
import { PredictionStore } from '../store';
import { cleanUp } from '../testing/clean-up';
import { FakeEngine, gate } from '../testing/engine';
import { newInput } from '../testing/input';
import { RequestQueue } from './queue';
import { QueueRunner } from './queue-runner';

/** Long enough for a slow machine. */
const soon = { timeout: 30_000 };
let store: PredictionStore;

beforeEach(() => {
  store = new PredictionStore(new KinoraDatabase(`test-${crypto.randomUUID()}`));
});

afterEach(async () => {
  await expect.poll(lockIsFree, soon).toBe(true);
  await cleanUp(store.database);
});

/** What one tab has: its engine and runners, over the tables and locks that all tabs share. */
function openTab() {
  const engine = new FakeEngine();
  const runner = new Runner(store, engine, readImageFile);
  const opened: string[] = [];
  const queueRunner = new QueueRunner(new RequestQueue(store.database), runner, async (lora) => {
    opened.push(lora.name);
    return { name: lora.name, file: new Blob(['of the library']) };
  });
  const stopped: string[] = [];
  queueRunner.onStopped((id) => stopped.push(id));
  return { engine, runner, queueRunner, queue: queueRunner.queue, opened, stopped };
}

async function lockIsFree(): Promise<boolean> {
  const { held = [], pending = [] } = await navigator.locks.query();
  return ![...held, ...pending].some(({ name }) => name === queueLock);
}

const inputs = (...seeds: readonly number[]) =>
  Promise.all(seeds.map((seed) => newInput({ seed, num_inference_steps: 1 })));

/** The seeds of all predictions in the order of their start, with how each ended. */
async function made(): Promise<string[]> {
  const rows = (await store.list()).reverse();
  return rows.map(({ parameters, status }) => `${parameters.seed} ${status}`);
}

const waiting = async ({ queue }: { queue: RequestQueue }) =>
  (await queue.list()).map(({ input }) => input.parameters.seed);

test('requests run one after the other, with the id of their entry and adapters of the library', async () => {
  const tab = openTab();
  const { opened, open } = gate();
  tab.engine.script = () => opened;
  const [first, second] = await inputs(1, 2);
  if (!first || !second) throw new Error('two inputs');
  const parameters = { ...second.parameters, loras: [{ path: 'swing', scale: 1 }] };
  const withLora = { ...second, parameters, loras: [{ name: 'swing', file: null }] };
  expect(await tab.queueRunner.add([first, withLora])).toBe(true);
  await expect.poll(() => waiting(tab), soon).toEqual([2]);
  const [entry] = await tab.queue.list();
  expect(entry?.thumbnail?.type).toBe('image/jpeg');
  // While the queue runs, a request waits.
  expect(await tab.queueRunner.add(await inputs(3))).toBe(false);
  open();
  await expect.poll(made, soon).toEqual(['1 completed', '2 completed', '3 completed']);
  await expect.poll(() => tab.stopped.length, soon).toBe(1);
  expect(await waiting(tab)).toEqual([]);
  expect(tab.opened).toEqual(['swing']);
  const source = await store.source(entry?.id ?? '');
  expect(await source?.loras[0]?.file.text()).toBe('of the library');
  expect(tab.queueRunner.isActive()).toBe(false);
});

test('what is wrong with a request is said before it is added: then nothing waits', async () => {
  const tab = openTab();
  const good = await newInput();
  const bad = { ...good, parameters: { ...good.parameters, duration: 4 } };
  await expect(tab.queueRunner.add([good, bad])).rejects.toMatchObject({
    code: 'PARAMETER_INVALID',
  });
  const image = new Blob(['no image']);
  await expect(tab.queueRunner.add([{ ...good, image }])).rejects.toMatchObject({
    code: 'IMAGE_UNREADABLE',
  });
  expect(await waiting(tab)).toEqual([]);
  expect(await made()).toEqual([]);
});

test('the queue pauses after an entry that says so, and goes on when it is asked to', async () => {
  const tab = openTab();
  const { opened, open } = gate();
  tab.engine.script = () => opened;
  await tab.queueRunner.add(await inputs(1, 2, 3));
  await expect.poll(() => waiting(tab), soon).toEqual([2, 3]);
  const [second] = await tab.queue.list();
  await tab.queue.setPauseAfter(second?.id ?? '', true);
  open();
  await expect.poll(() => tab.stopped, soon).toEqual([second?.id]);
  expect(await made()).toEqual(['1 completed', '2 completed']);
  // A paused queue takes requests, and does not run them.
  expect(await tab.queueRunner.add(await inputs(4))).toBe(false);
  expect(await waiting(tab)).toEqual([3, 4]);
  await tab.queueRunner.unpause();
  await expect.poll(() => tab.stopped.length, soon).toBe(2);
  expect(await waiting(tab)).toEqual([]);
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
    await tab.queueRunner.add(await inputs(1, 2));
    await expect.poll(() => tab.stopped.length, soon).toBe(1);
    if (then === 'goes on') {
      expect(await made()).toEqual(['1 failed', '2 completed']);
      return;
    }
    expect(await made()).toEqual(['1 failed']);
    expect(await tab.queue.pauseState()).toEqual({ reason: 'run', code });
    // Its entries are removed: the pause was meant for them.
    await tab.queue.remove((await tab.queue.list()).map(({ id }) => id));
    expect(await tab.queueRunner.add(await inputs(3))).toBe(true);
    await expect.poll(made, soon).toEqual(['1 failed', '3 completed']);
  });
}

test('an entry that cannot be started stays, and the queue is paused', async () => {
  const tab = openTab();
  const input = await newInput({ loras: [{ path: 'gone', scale: 1 }] });
  const queueRunner = new QueueRunner(tab.queue, tab.runner, async () => {
    throw new KinoraError('LORA_MISSING');
  });
  await queueRunner.add([{ ...input, loras: [{ name: 'gone', file: null }] }]);
  await expect
    .poll(() => tab.queue.pauseState(), soon)
    .toMatchObject({ reason: 'entry', error: { code: 'LORA_MISSING' } });
  expect(await waiting(tab)).toHaveLength(1);
  expect(await made()).toEqual([]);
});

test('one tab runs the queue; a run that a person has started in it comes first', async () => {
  const [one, two] = [openTab(), openTab()];
  const { opened, open } = gate();
  one.engine.script = () => opened;
  await one.runner.start(await newInput({ seed: 9, num_inference_steps: 1 }));
  await one.queueRunner.add(await inputs(1));
  expect(await two.queueRunner.add(await inputs(2))).toBe(false);
  expect(await waiting(one)).toEqual([1, 2]);
  open();
  await expect.poll(made, soon).toEqual(['9 completed', '1 completed', '2 completed']);
  expect(two.engine.opened).toBe(0);
  // The first tab has stopped; what the second one adds now runs there.
  await expect.poll(() => one.stopped.length, soon).toBe(1);
  await expect.poll(lockIsFree, soon).toBe(true);
  expect(await two.queueRunner.add(await inputs(3))).toBe(true);
  await expect.poll(() => two.stopped.length, soon).toBe(1);
  expect(two.engine.opened).toBe(1);
});

test('what waits when the page opens runs, unless it is paused', async () => {
  const before = openTab();
  await before.queue.add(await inputs(1, 2), []);
  await before.queue.pause();
  const tab = openTab();
  tab.queueRunner.wake();
  await expect.poll(lockIsFree, soon).toBe(true);
  expect(await made()).toEqual([]);
  await before.queue.unpause();
  tab.queueRunner.wake();
  tab.queueRunner.wake();
  await expect.poll(made, soon).toEqual(['1 completed', '2 completed']);
});

test('an entry that is edited is held: the next one runs, and it runs when the edit is over', async () => {
  const tab = openTab();
  const other = openTab();
  const { opened, open } = gate();
  tab.engine.script = () => opened;
  await tab.queueRunner.add(await inputs(1, 2, 3));
  await expect.poll(() => waiting(tab), soon).toEqual([2, 3]);
  const [entry] = await tab.queue.list();
  const id = entry?.id ?? '';
  const release = await other.queueRunner.hold(id);
  expect(await tab.queueRunner.hold(id), 'two tabs do not edit one entry').toBeNull();
  open();
  await expect.poll(made, soon).toEqual(['1 completed', '3 completed']);
  await expect.poll(tab.queueRunner.isHeld, soon).toBe(true);
  expect(tab.queueRunner.isActive()).toBe(false);
  const [edited] = await inputs(20);
  if (edited) expect(await other.queueRunner.replace(id, edited)).toBe(true);
  release?.();
  await expect.poll(made, soon).toEqual(['1 completed', '3 completed', '20 completed']);
  expect(tab.queueRunner.isHeld()).toBe(false);
  expect(await tab.queueRunner.hold(id), 'its turn has come').toBeNull();
});
