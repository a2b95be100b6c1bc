import { writeFileSync } from 'node:fs';
import type { Reporter } from 'vitest/node';

/** Where {@link UnhandledReporter} writes, in an environment variable. */
export const unhandledFileVariable = 'KINORA_UNHANDLED_FILE';

/** Writes down the errors outside of any test, which Vitest's JSON leaves out. */
export default class UnhandledReporter implements Reporter {
  onTestRunEnd(
    _modules: Parameters<NonNullable<Reporter['onTestRunEnd']>>[0],
    errors: Parameters<NonNullable<Reporter['onTestRunEnd']>>[1],
  ): void {
    const file = process.env[unhandledFileVariable];
    if (file) writeFileSync(file, JSON.stringify(errors.map(({ message }) => ({ message }))));
  }
}
