/**
 * What failed, by name, for the end of the output: whoever reads a log of a run on another machine
 * may have its last lines only.
 */
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { PlaywrightReport, PlaywrightSuite, VitestReport } from './tally';

/** Lines shown of one failure's message. */
const MOST_LINES = 12;

/** A failed test, a file that could not be loaded, or an error outside of any test. */
export interface Failure {
  /** As the runner takes it; null where no file is to blame. */
  readonly file: string | null;
  /** Where, and the beginning of the message. */
  readonly text: string;
}

/**
 * The failed tests of a Vitest run, the files that could not be loaded, and errors outside of any test.
 *
 * @param report of `--reporter=json`; undefined when none was written
 * @param root the project's folder, which is left out of the files' names
 */
export function vitestFailures(report: unknown, root: string): readonly Failure[] {
  if (!report) return [];
  const { testResults, errors = [] } = report as VitestReport;
  const inFiles = testResults.flatMap(({ name, message, assertionResults }) => {
    const file = path.relative(root, name);
    const tests = assertionResults.filter((test) => test.status === 'failed');
    if (tests.length === 0) return message ? [{ file, text: textOf(file, message) }] : [];
    return tests.map(({ fullName, failureMessages }) => ({
      file,
      text: textOf(`${file} › ${fullName}`, failureMessages.join('\n')),
    }));
  });
  return [...inFiles, ...errors.map(outside)];
}

/**
 * The failed tests of a Playwright run, those that passed only when repeated, and errors outside of any.
 *
 * @param report of the `json` reporter; undefined when none was written
 */
export function playwrightFailures(report: unknown): readonly Failure[] {
  if (!report) return [];
  const { suites, errors } = report as PlaywrightReport;
  return [...suites.flatMap(suiteFailures), ...errors.map(outside)];
}

function outside({ message = '' }: { readonly message?: string }): Failure {
  return { file: null, text: textOf('outside of any test', message) };
}

function suiteFailures(suite: PlaywrightSuite): readonly Failure[] {
  const own = suite.specs.flatMap(({ title, file, tests }) => {
    const bad = tests.filter(({ status }) => status === 'unexpected' || status === 'flaky');
    return bad.map(({ results }) => {
      const errors = results.flatMap((result) => result.errors);
      const message = errors.map((error) => error.message ?? '').join('\n');
      return { file, text: textOf(`${file} › ${title}`, message) };
    });
  });
  return [...own, ...(suite.suites ?? []).flatMap(suiteFailures)];
}

function textOf(where: string, message: string): string {
  const lines = stripVTControlCharacters(message).trim().split('\n');
  const shown = lines.slice(0, MOST_LINES).map((line) => `  ${line}`);
  const more = lines.length > MOST_LINES ? [`  … ${lines.length - MOST_LINES} more lines`] : [];
  return [where, ...shown, ...more].join('\n');
}
