/** @module-tag full */

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileServer } from '../../lib/cli/dev/compile-server';
import { root } from '../../lib/cli/paths';
import { outputOf, signalTree, startChild } from '../../lib/cli/process';

/** A node in a process of its own, compiled as `npm run build` does it and `npm start` runs it; all starts share a folder. */
const compiled = path.join(root, '.next', `relay-test-${process.pid}`);
let folder = '';
let keysFile = '';
const children: ChildProcess[] = [];
const folders: string[] = [compiled];
afterAll(() => {
  for (const child of children) signalTree(child, 'SIGKILL');
  for (const each of folders) rmSync(each, { recursive: true, force: true });
});

interface Started {
  readonly child: ChildProcess;
  /** What people are told, and the log. */
  told(): string;
  log(): string;
  origin(): Promise<string>;
  /** Its exit code, once all that it said has come. */
  readonly ended: Promise<unknown>;
}

/** What people are told last, at a first start and at any other. */
const lastOfFirst = /#sign-in=\S+\n/;
const lastOfOther = /Manage keys: .+\n/;
const timeout = 60_000;

function start(settings: Readonly<Record<string, string>> = {}, ...options: string[]): Started {
  const child = startChild([path.join(compiled, 'main.mjs'), ...options], {
    env: { PORT: '0', KINORA_DATA: folder, KINORA_FIRST_START_FILE: keysFile, ...settings },
  });
  children.push(child);
  const told = outputOf(child.stderr);
  return {
    child,
    told,
    log: outputOf(child.stdout),
    ended: once(child, 'close').then(([code]) => code),
    async origin() {
      await expect.poll(told, { timeout: 100_000 }).toMatch(/runs at \S+\n/);
      return /runs at (\S+)/.exec(told())?.[1] ?? '';
    },
  };
}

const notOnWindows = describe.skipIf(process.platform === 'win32');
notOnWindows('a node', { timeout: 120_000 }, () => {
  beforeAll(async () => {
    await compileServer('relay/testing/node.ts', compiled);
    folder = mkdtempSync(path.join(tmpdir(), 'kinora-node-'));
    folders.push(folder);
    keysFile = path.join(folder, 'first-start.json');
  });

  it('prints no key before the terms are accepted, but where to accept them', async () => {
    const node = start({ KINORA_ACCEPT_TERMS: '2020-01-01' });
    await node.origin();
    await expect.poll(node.told, { timeout }).toMatch(/--accept-terms.+\n/);
    expect(node.told()).toContain('names another version, 2020-01-01');
    expect(node.told()).toMatch(lastOfFirst);
    expect(node.told()).not.toMatch(/k[nw]_/);
    node.child.kill('SIGTERM');
    expect(await node.ended).toBe(0);
  });

  it('prints its keys at the first start, not in the log, and stops in order', async () => {
    const node = start({}, '--accept-terms');
    const origin = await node.origin();
    await expect.poll(node.told, { timeout }).toMatch(lastOfFirst);
    const keys = JSON.parse(readFileSync(keysFile, 'utf8')) as Record<string, string>;
    expect(statSync(keysFile).mode & 0o777).toBe(0o600);
    for (const name of ['apiKey', 'workerToken', 'signInToken']) {
      expect(node.told()).toContain(keys[name]);
      expect(node.log()).not.toContain(keys[name]);
    }
    const control = path.join(folder, 'control.json');
    expect(JSON.parse(readFileSync(control, 'utf8'))).toMatchObject({ origin });

    // Its parts have a second to answer, which a machine that stands still for a moment may pass.
    const ready = async () => (await fetch(`${origin}/readyz`)).status;
    await expect.poll(ready, { timeout }).toBe(200);
    expect(await (await fetch(`${origin}/somewhere`)).text()).toBe('a page');
    node.child.kill('SIGTERM');
    expect(await node.ended).toBe(0);
    expect(existsSync(control)).toBe(false);
    for (const line of node.log().trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
  });

  it('does not print them again, and reports that the folder or the port is in use', async () => {
    const node = start();
    const origin = await node.origin();
    await expect.poll(node.told, { timeout }).toMatch(lastOfOther);
    expect(node.told()).toContain(`Connect a tab: ${origin}/serve`);
    expect(node.told()).toContain(`${origin}/keys, sign in with \`npm run keys -- sign-in\``);

    const second = start();
    const third = start({ PORT: new URL(origin).port });
    const fourth = start({ PORT: 'x', KINORA_LEASE_SECONDS: '-1' });
    const codes = await Promise.all([second, third, fourth].map(({ ended }) => ended));
    expect(codes).toEqual([1, 1, 1]);
    expect(second.told()).toMatch(/^The database in \S+ is in use by process \d+/);
    expect(third.told()).toMatch(/^Port \d+ of 127\.0\.0\.1 is taken/);
    expect(fourth.told()).toMatch(
      /^Settings that cannot be used:\nPORT: .+\nKINORA_LEASE_SECONDS: /,
    );

    node.child.kill('SIGINT');
    expect(await node.ended).toBe(0);
    expect(node.told()).not.toMatch(/first start|k[nws]_/);
  });
});

it('`--help` prints the options, and one that there is not is refused, without a start', async () => {
  const run = async (option: string) => {
    const child = startChild(['--import', 'tsx/esm', path.join(root, 'relay/main.ts'), option]);
    const [out, told] = [outputOf(child.stdout), outputOf(child.stderr)];
    const [code] = await once(child, 'close');
    return { code, out: out(), told: told() };
  };
  const [help, short, typo] = await Promise.all(['--help', '-h', '--accept-term'].map(run));
  const text = expect.stringMatching(/^npm start -- \[options\][\s\S]*--accept-terms[\s\S]*--dev/);
  expect(help).toEqual({ code: 0, out: text, told: '' });
  expect(short).toEqual(help);
  expect(typo).toMatchObject({ code: 1, out: '' });
  expect(typo?.told).toMatch(/^Unknown option '--accept-term'.*\nSee npm start -- --help\.\n$/);
});

it('`npm start` without a build says what to do', async () => {
  const project = mkdtempSync(path.join(tmpdir(), 'kinora-no-build-'));
  folders.push(project);
  cpSync(path.join(root, 'relay/start.js'), path.join(project, 'relay/start.mjs'));
  const child = startChild([path.join(project, 'relay/start.mjs')]);
  const told = outputOf(child.stderr);
  const [code] = await once(child, 'close');
  expect({ code, told: told() }).toEqual({
    code: 1,
    told: 'There is no build of the app yet. Run npm run build first.\n',
  });
});
