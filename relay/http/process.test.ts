import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

/** Idles for longer than the watchdog waits, says so, and then stands still for ever. */
const program = `
  import { watchLoop } from './relay/http/process.ts';
  watchLoop({ seconds: 1 });
  setTimeout(() => {
    console.log('alive');
    setTimeout(() => { for (;;); }, 100);
  }, 1500);
`;

it.skipIf(process.platform === 'win32')(
  'ends a process whose loop stands still, and no other',
  { timeout: 60_000 },
  async () => {
    const child = spawn(
      process.execPath,
      ['--import', 'tsx/esm', '--input-type=module', '-e', program],
      { cwd: fileURLToPath(new URL('../..', import.meta.url)), stdio: ['ignore', 'pipe', 'pipe'] },
    );
    const [out, told, [code, signal]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'exit'),
    ]);
    expect({ out, code, signal }).toEqual({ out: 'alive\n', code: null, signal: 'SIGKILL' });
    expect(told).toContain('Kinora ends: it has answered nothing for 1 s.');
  },
);
