/** How many checks of one stage passed and failed. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
}

/** What is read of Vitest's `--reporter=json`, and of `unhandled-reporter.ts`. */
export interface VitestReport {
  /** Errors outside of any test. */
  readonly errors?: readonly { readonly message?: string }[];
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly {
    /** The file. */
    readonly name: string;
    readonly status: string;
    /** Why the file could not be loaded; empty otherwise. */
    readonly message: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

/** One file, or one `describe` of it, of Playwright's `json` reporter. */
export interface PlaywrightSuite {
  readonly title: string;
  readonly suites?: readonly PlaywrightSuite[];
  readonly specs: readonly {
    readonly title: string;
    readonly file: string;
    readonly tests: readonly {
      readonly status: string;
      readonly results: readonly { readonly errors: readonly { readonly message?: string }[] }[];
    }[];
  }[];
}

/** What is read of Playwright's `json` reporter. */
export interface PlaywrightReport {
  readonly stats: {
    readonly expected: number;
    readonly unexpected: number;
    readonly flaky: number;
  };
  readonly suites: readonly PlaywrightSuite[];
  readonly errors: readonly { readonly message?: string }[];
}

/** A stage that is one check by itself: types, lint, build. */
export function tallyCommand(exitCode: number): Tally {
  return exitCode === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

/**
 * Counts a Vitest run. A file that could not even be loaded has no failed test but is a failure.
 *
 * @param report undefined when none was written
 */
export function tallyVitest(exitCode: number, report: unknown): Tally {
  if (!report) return { passed: 0, failed: 1 };
  const { numPassedTests, numFailedTests, testResults, errors = [] } = report as VitestReport;
  const broken = testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  ).length;
  return atLeastOneFailure(exitCode, {
    passed: numPassedTests,
    failed: numFailedTests + broken + errors.length,
  });
}

/**
 * Counts a Playwright run; a test that passed only when repeated has failed.
 *
 * @param report undefined when none was written
 */
export function tallyPlaywright(exitCode: number, report: unknown): Tally {
  if (!report) return { passed: 0, failed: 1 };
  const { stats, errors } = report as PlaywrightReport;
  return atLeastOneFailure(exitCode, {
    passed: stats.expected,
    failed: stats.unexpected + stats.flaky + errors.length,
  });
}

/** A runner that reports failure, or that ran nothing at all, never counts as passed. */
function atLeastOneFailure(exitCode: number, tally: Tally): Tally {
  const hollow = tally.failed === 0 && (exitCode !== 0 || tally.passed === 0);
  return hollow ? { ...tally, failed: 1 } : tally;
}

/** Adds up. */
export function total(tallies: readonly Tally[]): Tally {
  return tallies.reduce(
    (sum, { passed, failed }) => ({ passed: sum.passed + passed, failed: sum.failed + failed }),
    { passed: 0, failed: 0 },
  );
}
