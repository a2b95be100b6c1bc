import { expect, it } from 'vitest';
import { playwrightFailures, vitestFailures } from './failures';

it('names the failed tests of Vitest, files that could not be loaded, and errors outside', () => {
  const test = (status: string, fullName: string, ...failureMessages: string[]) => ({
    status,
    fullName,
    failureMessages,
  });
  const report = {
    testResults: [
      {
        name: '/project/lib/a.test.ts',
        status: 'failed',
        message: '',
        assertionResults: [
          test('passed', 'adds'),
          test('failed', 'sums up', 'expected \u001b[32m1\u001b[39m to be 2\n  at a.ts:3'),
        ],
      },
      { name: '/project/lib/b.test.ts', status: 'failed', message: 'no b', assertionResults: [] },
      { name: '/project/lib/c.test.ts', status: 'passed', message: '', assertionResults: [] },
    ],
    errors: [{ message: 'nobody caught it' }],
  };
  expect(vitestFailures(report, '/project')).toEqual([
    {
      file: 'lib/a.test.ts',
      text: 'lib/a.test.ts › sums up\n  expected 1 to be 2\n    at a.ts:3',
    },
    { file: 'lib/b.test.ts', text: 'lib/b.test.ts\n  no b' },
    { file: null, text: 'outside of any test\n  nobody caught it' },
  ]);
  expect(vitestFailures(undefined, '/project')).toEqual([]);
});

it('names the failed tests of Playwright at every depth, flaky ones too, and errors outside', () => {
  const spec = (title: string, status: string, ...messages: string[]) => ({
    title,
    file: 'a.spec.ts',
    tests: [{ status, results: [{ errors: messages.map((message) => ({ message })) }] }],
  });
  const report = {
    suites: [
      {
        title: 'a.spec.ts',
        specs: [spec('plays', 'expected'), spec('stops', 'unexpected', 'time-out')],
        suites: [{ title: 'deep', specs: [spec('pauses', 'flaky', 'once')] }],
      },
    ],
    errors: [{ message: 'no build' }],
  };
  expect(playwrightFailures(report)).toEqual([
    { file: 'a.spec.ts', text: 'a.spec.ts › stops\n  time-out' },
    { file: 'a.spec.ts', text: 'a.spec.ts › pauses\n  once' },
    { file: null, text: 'outside of any test\n  no build' },
  ]);
  expect(playwrightFailures(undefined)).toEqual([]);
});

it('shortens long messages and says so', () => {
  const message = Array.from({ length: 30 }, (_, line) => `line ${line}`).join('\n');
  const [failure] = playwrightFailures({ suites: [], errors: [{ message }] });
  const lines = failure?.text.split('\n');
  expect(lines).toHaveLength(14);
  expect(lines?.at(-1)).toBe('  … 18 more lines');
});
