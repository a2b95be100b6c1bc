import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { exitCode, startChild, stopTree } from './process';

/** A program that starts another one, tells its id and then waits. */
const withGrandchild = `
  const { spawn } = require('node:child_process');
  const deaf = "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); console.log('up')";
  const child = spawn(process.execPath, ['-e', deaf], { stdio: ['ignore', 'pipe', 'ignore'] });
  child.stdout.once('data', () => console.log(child.pid));
  process.on('SIGTERM', () => {});
  setInterval(() => {}, 1000);
`;

it('gives the exit code', async () => {
  expect(await exitCode(startChild(['-e', 'process.exit(3)']))).toBe(3);
});

it.skipIf(process.platform === 'win32')(
  'ends a child and its children, also those that ignore SIGTERM',
  async () => {
    const child = startChild(['-e', withGrandchild]);
    if (!child.stdout) throw new Error('no output');
    const [said] = (await once(child.stdout, 'data')) as [Buffer];
    const grandchild = Number(said.toString());
    expect(isAlive(grandchild)).toBe(true);
    await stopTree(child, 300);
    await expect.poll(() => isAlive(grandchild), { timeout: 30_000 }).toBe(false);
    await stopTree(child);
  },
);

it.skipIf(process.platform === 'win32')('does not wait for one that ends when asked', async () => {
  const child = startChild(['-e', 'setInterval(() => {}, 1000)']);
  // Longer than this test may take.
  await stopTree(child, 600_000);
  expect(child.signalCode).toBe('SIGTERM');
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // One that has ended keeps its number until its parent asks, which in a container may be never.
    if (process.platform !== 'linux') return true;
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
