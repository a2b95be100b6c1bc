import { expect, test } from 'vitest';
import { KinoraError } from '../../../../lib/contract/errors';
import { changeTrim, type TrimEvent, type TrimState } from './trim-state';

const video = new Blob(['mp4']);
const error = new KinoraError('ENCODER_FAILED').toRecord();

function after(...events: readonly TrimEvent[]): TrimState {
  return events.reduce(changeTrim, { status: 'opening' });
}

const opened = { type: 'opened', video, frames: 121, reasonFor: () => null } as const;

test('start and end stay inside of the video and one frame apart', () => {
  expect(after(opened)).toMatchObject({ status: 'ready', from: 0, to: 121 });
  const end = after(opened, { type: 'endMoved', last: 40 });
  expect(end).toMatchObject({ from: 0, to: 41 });
  expect(changeTrim(end, { type: 'startMoved', first: 99 })).toMatchObject({ from: 40, to: 41 });
  const start = after(opened, { type: 'startMoved', first: 60 });
  expect(changeTrim(start, { type: 'endMoved', last: 3 })).toMatchObject({ from: 60, to: 61 });
  expect(changeTrim(start, { type: 'endMoved', last: 500 })).toMatchObject({ to: 121 });
});

test('what fails while it is written leaves the choice as it was; what fails before leaves nothing', () => {
  const choice = { type: 'startMoved', first: 7 } as const;
  const writing = after(opened, choice, { type: 'started' }, { type: 'progressed', done: 5 });
  expect(writing).toMatchObject({ status: 'writing', from: 7, done: 5 });
  expect(changeTrim(writing, choice)).toBe(writing);
  const failed = changeTrim(writing, { type: 'failed', error });
  expect(failed).toMatchObject({ status: 'ready', from: 7, problem: error });
  expect(after({ type: 'failed', error })).toEqual({ status: 'failed', error });
});
