import { describe, expect, it } from 'vitest';
import type { Failure } from './failures';
import { filesToRepeat, type Run, repeated } from './repeat';

const failure = (file: string | null, test: string, message = 'late'): Failure => ({
  file,
  text: `${file} › ${test}\n  ${message}`,
});
const runOf = (passed: number, failed: number, ...failures: Failure[]): Run => ({
  tally: { passed, failed },
  failures,
});
const [sums, stops, ends] = [
  failure('a.test.ts', 'sums'),
  failure('a.test.ts', 'stops'),
  failure('b.test.ts', 'ends'),
];

describe('the files to run again', () => {
  it('are those with failures, each once', () => {
    expect(filesToRepeat(runOf(9, 3, sums, stops, ends))).toEqual(['a.test.ts', 'b.test.ts']);
    expect(filesToRepeat(runOf(9, 0))).toEqual([]);
  });
  it('are none where a failure has no file, or is not named', () => {
    expect(filesToRepeat(runOf(9, 2, sums, failure(null, 'set-up')))).toEqual([]);
    expect(filesToRepeat(runOf(9, 2, sums))).toEqual([]);
    expect(filesToRepeat(runOf(0, 1))).toEqual([]);
  });
  it('are none where many files failed', () => {
    const many = ['a', 'b', 'c', 'd'].map((name) => failure(`${name}.test.ts`, 'runs'));
    expect(filesToRepeat(runOf(9, 4, ...many))).toEqual([]);
    expect(filesToRepeat(runOf(9, 3, ...many.slice(1)))).toHaveLength(3);
  });
});

describe('what counts after the second run', () => {
  const first = runOf(7, 2, sums, ends);
  it('is its success, with the first failures named', () => {
    expect(repeated(first, runOf(4, 0))).toEqual({
      tally: { passed: 9, failed: 0 },
      failures: [],
      flaky: [sums, ends],
    });
  });
  it('is a failure that comes again, whatever it says', () => {
    const again = failure('a.test.ts', 'sums', '3 is not 2');
    expect(repeated(first, runOf(3, 1, again))).toEqual({
      tally: { passed: 8, failed: 1 },
      failures: [again, sums],
      flaky: [ends],
    });
    expect(repeated(first, runOf(3, 1, sums)).failures).toEqual([sums]);
  });
  it('is another failure of a file too', () => {
    expect(repeated(first, runOf(3, 1, stops))).toMatchObject({
      tally: { failed: 1 },
      failures: [stops, sums],
      flaky: [ends],
    });
  });
  it('is the first run as well where the second cannot tell', () => {
    const all = { tally: { failed: 1 }, flaky: [] };
    expect(repeated(first, runOf(0, 1))).toMatchObject({ ...all, failures: [sums, ends] });
    const lost = failure(null, 'set-up');
    expect(repeated(first, runOf(0, 1, lost))).toMatchObject({
      ...all,
      failures: [lost, sums, ends],
    });
  });
});
