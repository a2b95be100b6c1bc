/**
 * `npm run soak`: the relay's tests with `KINORA_SOAK`, for minutes instead of seconds: random
 * interleavings of the job store, contract fuzz, ten kills of a loaded server, a thousand idle workers, requests per second.
 */
import { spawn } from 'node:child_process';
import { refuseMore, runCommand } from '../arguments';
import { root } from '../paths';
import { exitCode } from '../process';
import { binary } from './build';

const help = `npm run soak -- [--help]

Runs the tests of the server for minutes instead of seconds: random interleavings of the job store,
random requests against the API, ten kills of a loaded server, a thousand idle workers and requests per
second, whose figures it prints. Ctrl-C ends it.
`;

const optionTypes = { help: { type: 'boolean', short: 'h', default: false } } as const;

process.exitCode = await runCommand('soak', help, optionTypes, async ({ positionals }) => {
  refuseMore('soak', positionals);
  const child = spawn(
    process.execPath,
    [binary('vitest', 'vitest.mjs'), 'run', '--project', 'node', 'relay'],
    { cwd: root, env: { ...process.env, KINORA_SOAK: '1' }, stdio: 'inherit' },
  );
  process.once('SIGINT', () => child.kill('SIGINT'));
  return await exitCode(child);
});
