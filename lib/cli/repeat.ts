/**
 * Running a failed file once more. A machine that stood still for a moment fails some test of
 * thousands; what a change broke fails again, unless it needs the files that ran before it. So what
 * passed the second time is always named.
 */
import type { Failure } from './failures';
import type { Tally } from './tally';

/** One run of a test runner. */
export interface Run {
  readonly tally: Tally;
  readonly failures: readonly Failure[];
}

/** More files than this are no accident. */
const MOST_FILES = 3;

/**
 * The files to run again.
 *
 * @returns none where everything passed, where much failed, or where a failure has no file: an error
 * outside of any test would not be seen again
 */
export function filesToRepeat({ tally, failures }: Run): readonly string[] {
  if (tally.failed === 0 || tally.failed > failures.length) return [];
  const files = new Set<string>();
  for (const { file } of failures) {
    if (file === null) return [];
    files.add(file);
  }
  return files.size > MOST_FILES ? [] : [...files];
}

/**
 * What counts after the second run of the files that failed in the first.
 *
 * @returns what failed again as `failures`, what passed as `flaky`
 */
export function repeated(first: Run, second: Run): Run & { readonly flaky: readonly Failure[] } {
  const { failed } = second.tally;
  const passed = first.tally.passed + Math.max(0, first.tally.failed - failed);
  // A second run that does not name its failures clears nobody, and a file with one left is not clear.
  const isSilent = failed > second.failures.length;
  const files = new Set(second.failures.map(({ file }) => file));
  const isLeft = ({ file }: Failure) => isSilent || files.has(null) || files.has(file);
  const texts = new Set(second.failures.map(({ text }) => text));
  const failures = [
    ...second.failures,
    ...first.failures.filter((failure) => isLeft(failure) && !texts.has(failure.text)),
  ];
  const flaky = first.failures.filter((failure) => !isLeft(failure));
  return { tally: { passed, failed }, failures, flaky };
}
