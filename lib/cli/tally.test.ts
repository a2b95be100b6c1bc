import { describe, expect, it } from 'vitest';
import { tallyCommand, tallyPlaywright, tallyVitest, total } from './tally';

const file = (status: string, ...tests: string[]) => ({
  status,
  assertionResults: tests.map((test) => ({ status: test })),
});
const vitest = (...testResults: ReturnType<typeof file>[]) => {
  const tests = testResults.flatMap((result) => result.assertionResults);
  const count = (status: string) => tests.filter((test) => test.status === status).length;
  return { numPassedTests: count('passed'), numFailedTests: count('failed'), testResults };
};

describe('counting Vitest', () => {
  it('counts tests, and leaves the skipped ones out', () => {
    const report = vitest(file('passed', 'passed', 'pending'), file('failed', 'failed', 'passed'));
    expect(tallyVitest(1, report)).toEqual({ passed: 2, failed: 1 });
  });
  it('counts a file that could not be loaded as one failure', () => {
    const report = vitest(file('passed', 'passed'), file('failed'));
    expect(tallyVitest(1, report)).toEqual({ passed: 1, failed: 1 });
  });
  it('counts an error outside of any test', () => {
    const passed = vitest(file('passed', 'passed'));
    expect(tallyVitest(1, passed)).toEqual({ passed: 1, failed: 1 });
    const both = { ...vitest(file('failed', 'failed', 'passed')), errors: [{ message: 'lost' }] };
    expect(tallyVitest(1, both)).toEqual({ passed: 1, failed: 2 });
  });
  it('fails when nothing ran or nothing was reported', () => {
    expect(tallyVitest(0, vitest())).toEqual({ passed: 0, failed: 1 });
    expect(tallyVitest(0, undefined)).toEqual({ passed: 0, failed: 1 });
  });
});

describe('counting Playwright', () => {
  const report = (expected: number, unexpected: number, flaky = 0, errors: unknown[] = []) => ({
    stats: { expected, unexpected, flaky, skipped: 1 },
    errors,
  });
  it('counts tests, flaky ones as failed', () => {
    expect(tallyPlaywright(1, report(5, 2, 1))).toEqual({ passed: 5, failed: 3 });
  });
  it('counts errors outside of any test, and a run of nothing', () => {
    expect(tallyPlaywright(1, report(0, 0, 0, ['setup']))).toEqual({ passed: 0, failed: 1 });
    expect(tallyPlaywright(0, report(0, 0))).toEqual({ passed: 0, failed: 1 });
    expect(tallyPlaywright(1, undefined)).toEqual({ passed: 0, failed: 1 });
  });
});

it('adds up, commands counting one each', () => {
  expect(total([tallyCommand(0), tallyCommand(2), { passed: 3, failed: 1 }])).toEqual({
    passed: 4,
    failed: 2,
  });
  expect(total([])).toEqual({ passed: 0, failed: 0 });
});
