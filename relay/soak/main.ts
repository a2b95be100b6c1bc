/**
 * `npm run soak`: the tests of the relay that get better with time, for minutes instead of seconds:
 * random interleavings of the job store, contract fuzz, ten kills of a loaded server.
 */
import { createRequire } from 'node:module';
import path from 'node:path';
import { exitCode, startChild } from '../../lib/cli/process';

const manifest = createRequire(import.meta.url).resolve('vitest/package.json');
const vitest = path.join(path.dirname(manifest), 'vitest.mjs');
const child = startChild([vitest, 'run', '--project', 'node', 'relay'], {
  env: { KINORA_SOAK: '1' },
});
child.stdout?.pipe(process.stdout);
child.stderr?.pipe(process.stderr);
process.once('SIGINT', () => child.kill('SIGINT'));
process.exitCode = await exitCode(child);
