import { expect, test, vi } from 'vitest';
import { atLeastOneFailure, playwrightCounts } from './test-summary';

test('a run that reports failure, and no test that failed, counts one failure', () => {
  // Its line would read as a failure of this run.
  const log = vi.spyOn(console, 'log').mockReturnValue();
  const passed = { passed: 3, failed: 0 };
  expect(atLeastOneFailure(0, passed)).toEqual(passed);
  expect(atLeastOneFailure(1, passed)).toEqual({ passed: 3, failed: 1 });
  expect(atLeastOneFailure(1, { passed: 3, failed: 2 })).toEqual({ passed: 3, failed: 2 });
  expect(log.mock.calls).toEqual([[expect.stringMatching(/^FAILED .* exit code 1/)]]);
  log.mockRestore();
});

test('a flaky end-to-end test has passed; an error outside of any test has failed', () => {
  const stats = { expected: 5, unexpected: 1, flaky: 2 };
  expect(playwrightCounts({ stats, errors: [{}] })).toEqual({ passed: 7, failed: 2 });
});
