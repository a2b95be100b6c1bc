/** @module-tag full */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const cwd = fileURLToPath(new URL('../..', import.meta.url));
const args = ['--import', 'tsx/esm', '--input-type=module', '-e'];

/** Follows its parent, and takes a second to stop. */
const follower = `
  import { pino } from 'pino';
  import { endOnSignals } from './relay/http/process.ts';
  endOnSignals({
    log: pino({ level: 'silent' }),
    print: console.log,
    stop: () => new Promise((stopped) => setTimeout(() => stopped(console.log('stopped')), 1000)),
    limitMs: 10_000,
    withParent: true,
  });
  setInterval(() => undefined, 1000);
  console.log('ready ' + process.pid);
`;

it.skipIf(process.platform === 'win32')(
  'the end of its parent during a stop is no second signal',
  { timeout: 60_000 },
  async () => {
    // As npm's shell, which is ended by a signal and passes none on.
    const parent = spawn(
      process.execPath,
      [
        '-e',
        'require("child_process").spawn(process.execPath, process.argv.slice(1), { stdio: "inherit" })',
      ].concat('--', ...args, follower),
      { cwd, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const output = text(parent.stdout.pipe(new PassThrough()));
    const [first] = await once(parent.stdout, 'data');
    const pid = Number(String(first).split(' ')[1]);
    process.kill(pid, 'SIGTERM');
    await delay(600);
    parent.kill('SIGKILL');
    // The child has the same pipe: it ends with it.
    expect(await output).toMatch(/Stopping.*\nstopped\n$/);
  },
);
