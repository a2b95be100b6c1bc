/**
 * What failed, by name, for the end of the output: whoever reads a log of a run on another machine
 * may have its last lines only.
 */
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { PlaywrightReport, PlaywrightSuite, VitestReport } from './tally';

/** Lines shown of one failure's message. */
const MOST_LINES = 12;

/**
 * The failed tests of a Vitest run, and the files that could not be loaded.
 *
 * @param report of `--reporter=json`; undefined when none was written
 * @param root the project's folder, which is left out of the files' names
 * @returns one text each: the file, the test, and the beginning of the message
 */
export function vitestFailures(report: unknown, root: string): readonly string[] {
  if (!report) return [];
  return (report as VitestReport).testResults.flatMap(({ name, message, assertionResults }) => {
    const file = path.relative(root, name);
    const tests = assertionResults.filter((test) => test.status === 'failed');
    if (tests.length === 0) return message ? [failure(file, message)] : [];
    return tests.map((test) =>
      failure(`${file} › ${test.fullName}`, test.failureMessages.join('\n')),
    );
  });
}

/**
 * The failed tests of a Playwright run, those that passed only when repeated, and errors outside of any.
 *
 * @param report of the `json` reporter; undefined when none was written
 * @returns one text each: the file, the test, and the beginning of the message
 */
export function playwrightFailures(report: unknown): readonly string[] {
  if (!report) return [];
  const { suites, errors } = report as PlaywrightReport;
  const outside = errors.map(({ message = '' }) => failure('outside of any test', message));
  return [...suites.flatMap(suiteFailures), ...outside];
}

function suiteFailures(suite: PlaywrightSuite): readonly string[] {
  const own = suite.specs.flatMap(({ title, file, tests }) => {
    const bad = tests.filter(({ status }) => status === 'unexpected' || status === 'flaky');
    return bad.map(({ results }) => {
      const errors = results.flatMap((result) => result.errors);
      return failure(`${file} › ${title}`, errors.map(({ message = '' }) => message).join('\n'));
    });
  });
  return [...own, ...(suite.suites ?? []).flatMap(suiteFailures)];
}

function failure(where: string, message: string): string {
  const lines = stripVTControlCharacters(message).trim().split('\n');
  const shown = lines.slice(0, MOST_LINES).map((line) => `  ${line}`);
  const more = lines.length > MOST_LINES ? [`  … ${lines.length - MOST_LINES} more lines`] : [];
  return [where, ...shown, ...more].join('\n');
}
