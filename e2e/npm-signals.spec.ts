import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'playwright/test';
import { root } from '../lib/cli/paths';
import { exitCode, freePort, outputOf, signalTree } from '../lib/cli/process';
import { full } from './support/fixtures';

/** As a service manager ends it: the signal goes to npm alone, and not to its children. */
test('SIGTERM to npm start ends the server', full, async () => {
  test.skip(process.platform === 'win32', 'Windows has no signals');
  const folder = await mkdtemp(path.join(tmpdir(), 'kinora-npm-'));
  const port = await freePort();
  const child = spawn('npm', ['start'], {
    cwd: root,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PORT: String(port), KINORA_HOST: '127.0.0.1', KINORA_DATA: folder },
  });
  const output = outputOf(child.stdout, child.stderr);
  const answers = () =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  try {
    await expect.poll(answers, { timeout: 60_000 }).toBe(true);
    child.kill('SIGTERM');
    await expect.poll(answers).toBe(false);
    await exitCode(child);
    expect(output()).toContain('Stopping');
  } finally {
    signalTree(child, 'SIGKILL');
    await rm(folder, { recursive: true, force: true });
  }
});
