import { expect, test } from 'vitest';
import type { DeliveryRow } from '../store/schema';
import { Backlog } from './backlog';

let made = 0;
const rowFor = (receiver: string): DeliveryRow => {
  made += 1;
  return {
    id: `${receiver}-${made}`,
    jobId: '',
    owner: 'ada',
    url: `https://${receiver}/hook?x=/y`,
    body: '',
    status: 'due',
    attempts: 0,
    attemptsBefore: 0,
    nextAt: new Date(0),
    lastStatus: null,
    lastAnswer: '',
    createdAt: new Date(0),
    finishedAt: null,
  };
};
const rowsFor = (receiver: string, count: number) =>
  Array.from({ length: count }, () => rowFor(receiver));
const takeAll = (backlog: Backlog, now = 0): string[] => {
  const taken: string[] = [];
  for (let row = backlog.take(now); row; row = backlog.take(now)) {
    taken.push(row.url.split('/')[2] ?? '');
  }
  return taken;
};

test('receivers take turns, none has more than its share, and all stay within the limit', () => {
  const backlog = new Backlog({ concurrency: 5, perReceiver: 3 });
  backlog.add([...rowsFor('a', 10), ...rowsFor('b', 2)], 1);
  expect(takeAll(backlog)).toEqual(['a', 'b', 'a', 'b', 'a']);
  backlog.ended('b');
  expect(takeAll(backlog)).toEqual([]);
  backlog.ended('a');
  expect(takeAll(backlog)).toEqual(['a']);
  expect(backlog.held()).toEqual(
    new Map([
      ['a', 9],
      ['b', 1],
    ]),
  );
});

test('what waited too long is let go', () => {
  const backlog = new Backlog({ concurrency: 5, perReceiver: 5 });
  backlog.add(rowsFor('a', 2), 10);
  backlog.add(rowsFor('a', 1), 20);
  expect(takeAll(backlog, 11)).toEqual(['a']);
  expect(backlog.held()).toEqual(new Map([['a', 1]]));
});

test('more is asked for when half of it is gone, of all and of the receiver', () => {
  const backlog = new Backlog({ concurrency: 2, perReceiver: 1 });
  expect(backlog.capacity).toEqual({ total: 12, perReceiver: 6 });
  backlog.add([...rowsFor('a', 6), ...rowsFor('b', 3)], 1);
  const asked: boolean[] = [];
  for (let attempt = 0; attempt < 4; attempt += 1) {
    takeAll(backlog);
    asked.push(backlog.ended('a'));
  }
  // 8, 7, 6 and 5 are left, of which 5, 4, 3 and 2 are for a.
  expect(asked).toEqual([false, false, true, true]);
});

test('what has not been begun is given up', () => {
  const backlog = new Backlog({ concurrency: 1, perReceiver: 1 });
  const rows = rowsFor('a', 3);
  backlog.add(rows, 1);
  expect(backlog.take(0)).toEqual(rows[0]);
  expect(backlog.clear()).toEqual(rows.slice(1));
  expect(backlog.held()).toEqual(new Map([['a', 1]]));
});
