import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Reporter } from 'vitest/node';

/** How many checks passed and failed. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
}

/** Names the variable with the file that {@link SummaryReporter} writes; nothing is written without it. */
export const countsFileVariable = 'KINORA_TEST_COUNTS';

/**
 * Adds to Vitest's own reporters: a line for each failure and each test that passed only when it
 * was repeated, and counts that include files which could not be loaded and errors outside of any test.
 */
export class SummaryReporter implements Reporter {
  onTestRunEnd(...[modules, unhandled]: Parameters<NonNullable<Reporter['onTestRunEnd']>>): void {
    let passed = 0;
    let failed = 0;
    const fail = (name: string, [error]: readonly { readonly message: string }[]) => {
      failed += 1;
      console.log(`FAILED ${name}: ${error?.message.split('\n')[0] ?? ''}`);
    };
    for (const error of unhandled) fail('outside of any test', [error]);
    for (const module of modules) {
      const file = module.relativeModuleId;
      for (const error of module.errors()) fail(file, [error]);
      for (const suite of module.children.allSuites())
        for (const error of suite.errors()) fail(`${file}: ${suite.fullName}`, [error]);
      for (const test of module.children.allTests()) {
        const { state, errors } = test.result();
        if (state === 'passed') passed += 1;
        if (state === 'failed') fail(`${file}: ${test.fullName}`, errors);
        if (test.diagnostic()?.flaky) console.log(`FLAKY ${file}: ${test.fullName}`);
      }
    }
    const file = process.env[countsFileVariable];
    if (file === undefined) return;
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify({ passed, failed } satisfies Counts));
  }
}

/**
 * Counts of a run of Playwright, whose own output names the flaky tests; those have passed.
 *
 * @param report what its `json` reporter wrote
 */
export function playwrightCounts(report: {
  readonly stats: {
    readonly expected: number;
    readonly unexpected: number;
    readonly flaky: number;
  };
  readonly errors: readonly unknown[];
}): Counts {
  const { expected, unexpected, flaky } = report.stats;
  return { passed: expected + flaky, failed: unexpected + report.errors.length };
}

/** Counts of a run that ended with this exit code: a failure that has no test is one all the same. */
export function atLeastOneFailure(exitCode: number, counts: Counts): Counts {
  if (exitCode === 0 || counts.failed > 0) return counts;
  console.log(`FAILED the run ended with exit code ${exitCode}, and no test failed`);
  return { ...counts, failed: 1 };
}
