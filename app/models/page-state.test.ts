import { expect, test } from 'vitest';
import { KinoraError } from '../../lib/contract';
import {
  addEach,
  changePage,
  initialPage,
  type PageAction,
  type PageState,
  type Sheet,
  shownAddress,
} from './page-state';

const after = (...actions: PageAction[]): PageState => actions.reduce(changePage, initialPage);
const error = new KinoraError('HUB_UNREACHABLE').toRecord();
const open = { type: 'sheetOpened', model: 'wan', precision: 'int8' } as const;
const asked: Sheet = { model: 'wan', precision: 'int8', plan: { status: 'asking' } };

test('the sheet asks for a plan and takes the answer', () => {
  expect(after(open).sheet).toEqual(asked);
  const plan = { status: 'failed', error } as const;
  const state = after(open, { type: 'planned', sheet: asked, plan });
  expect(state.sheet?.plan).toEqual(plan);
  expect(changePage(state, { type: 'sheetClosed' }).sheet).toBeNull();
});

test('an answer that comes too late is dropped', () => {
  const plan = { status: 'failed', error } as const;
  const answer = { type: 'planned', sheet: asked, plan } as const;
  const changed = after(open, { ...open, precision: 'int4' }, answer);
  expect(changed.sheet).toEqual({ ...asked, precision: 'int4' });
  expect(after(open, { type: 'sheetClosed' }, answer).sheet).toBeNull();
});

test('each subject has at most one of: work, problem, outcome', () => {
  const begun = { type: 'begun', subject: 'wan', what: 'Checking …' } as const;
  const failed = { type: 'failed', subject: 'wan', error } as const;
  expect(after(begun)).toMatchObject({ doing: { wan: 'Checking …' }, problems: {}, done: {} });
  expect(after(begun, failed)).toMatchObject({ doing: {}, problems: { wan: error }, done: {} });
  expect(after(begun, failed, begun)).toMatchObject({ problems: {} });
  expect(after(begun, { type: 'ended', subject: 'wan', said: 'Done.' })).toEqual({
    ...initialPage,
    done: { wan: 'Done.' },
  });
  expect(after(begun, { type: 'ended', subject: 'wan' })).toEqual(initialPage);
  const other = after(failed, { type: 'begun', subject: 'tiny', what: 'x' });
  expect(other.problems).toEqual({ wan: error });
});

test('what is to be deleted is asked for first', () => {
  const removal = { kind: 'files', id: 'wan' } as const;
  const state = after({ type: 'removalAsked', removal });
  expect(state.removal).toEqual(removal);
  expect(changePage(state, { type: 'removalAnswered' }).removal).toBeNull();
});

test('a refused address stays in the field, until another one is in force', () => {
  const typed = { text: 'https://mirror.example/typo', hub: 'https://hub.example' };
  expect(shownAddress(null, 'https://hub.example')).toBe('https://hub.example');
  expect(shownAddress(typed, 'https://hub.example')).toBe('https://mirror.example/typo');
  expect(shownAddress(typed, 'https://other.example')).toBe('https://other.example');
});

test('several files are added one after another, with an outcome for each', async () => {
  const files = ['a', 'b', 'c', 'd'].map((name) => new File([], `${name}.safetensors`));
  let atWork = 0;
  const add = async ({ name }: File) => {
    atWork += 1;
    expect(atWork).toBe(1);
    await Promise.resolve();
    atWork -= 1;
    if (name.startsWith('b')) throw new KinoraError('LORA_WRONG_BASE');
    if (name.startsWith('d')) throw new KinoraError('LORA_INVALID', 'It ends too early.');
    return name.slice(0, 1);
  };
  expect(await addEach(files, add)).toEqual([
    { name: 'a' },
    { name: 'b.safetensors', error: new KinoraError('LORA_WRONG_BASE').toRecord() },
    { name: 'c' },
    { name: 'd.safetensors', error: expect.objectContaining({ message: 'It ends too early.' }) },
  ]);
  // What says nothing of a single file is shown with its remedy.
  const offline = () => Promise.reject(new KinoraError('HUB_UNREACHABLE'));
  await expect(addEach(files.slice(0, 1), offline)).rejects.toMatchObject({
    code: 'HUB_UNREACHABLE',
  });
  expect(await addEach(files.slice(3), add)).toMatchObject([{ error: { code: 'LORA_INVALID' } }]);
});
