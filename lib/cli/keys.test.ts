/** @module-tag full */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  processControlToken,
  readControl,
  removeControl,
  writeControl,
} from '../../relay/access/control';
import { pgliteTemplate } from '../../relay/testing/pglite';
import { startTestRelay, type TestRelay } from '../../relay/testing/server';
import { termsVersion } from '../contract';
import { keysCommand } from './keys';
import { runLine, runProgram } from './testing/relay-command';

let folder: string;
/** A key that was made without a server. */
let made = '';
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kinora-keys-cli-'));
  await cp(await pgliteTemplate(), folder, { recursive: true });
}, 60_000);
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

const run = (line: string, more?: Record<string, string>) =>
  runLine(keysCommand, folder, line, { KINORA_ACCEPT_TERMS: termsVersion, ...more });

describe('what is typed', () => {
  it('is helped with', async () => {
    for (const line of ['--help', '', 'create -h']) {
      const { code, out } = await run(line);
      expect(code).toBe(0);
      expect(out).toContain('npm run keys -- create --name NAME');
    }
  });

  it.each([
    ['list --nmae x', "Unknown option '--nmae'"],
    ['frobnicate', 'There is no command "frobnicate".'],
    ['--name x', '--name is an option of "create" only.'],
    ['create', 'create needs --name'],
    ['create me', '"me" is too much'],
    ['create --name', '--name'],
    ['create --name x --kind sign-in', '--kind must be api or worker.'],
    ['create --name x --scopes all', '--scopes must be some of predictions:write'],
    ['create --name x --kind worker --scopes admin', 'a worker token has none'],
    ['create --name x --expires-in-days soon', '--expires-in-days must be a number above 0'],
    ['create --name x --expires-in-days 0', '--expires-in-days must be a number above 0'],
    ['revoke', 'revoke needs the id'],
    ['list --shared', '--shared is an option of "create" only.'],
    ['sign-in now', 'sign-in takes nothing more.'],
  ])('is refused with a sentence: %s', async (line, sentence) => {
    const { code, out, said } = await run(line);
    expect(code).toBe(2);
    expect(out).toBe('');
    expect(said).toMatch(/^PARAMETER_INVALID: /);
    expect(said).toContain(sentence);
    expect(said).toContain('npm run keys -- --help');
  });
});

describe('the terms of use', () => {
  it.each(['', '2020-01-01'])(
    'are needed for a key; KINORA_ACCEPT_TERMS=%s does not do',
    async (named) => {
      const before = (await run('list')).out;
      const refused = await run('create --name Bench', { KINORA_ACCEPT_TERMS: named });
      expect(refused).toMatchObject({ code: 2, out: '' });
      for (const part of [
        'TERMS_NOT_ACCEPTED: ',
        `version ${termsVersion}`,
        named,
        '--accept-terms',
      ]) {
        expect(refused.said).toContain(part);
      }
      expect((await run('list')).out).toBe(before);
    },
  );

  it('are accepted by an option', async () => {
    const accepting = 'create --name Accepted --accept-terms';
    expect((await run(accepting, { KINORA_ACCEPT_TERMS: '' })).code).toBe(0);
  });
});

describe('without a server', () => {
  it('opens the database itself', async () => {
    const created = await run('create --name Bench --owner ada --scopes admin --expires-in-days 2');
    expect(created).toMatchObject({
      code: 0,
      said: expect.stringContaining('API key "Bench" of ada.'),
    });
    expect(created.out).toMatch(/^kn_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}\n$/);
    made = created.out.trim();

    const link = await run('sign-in', { KINORA_PUBLIC_URL: 'https://kinora.example/' });
    expect(link.out).toMatch(/^https:\/\/kinora\.example\/keys#sign-in=ks_\w{8}_\w{43}\n$/);
    expect(link.said).toContain('The server does not run');
    expect(link.said).not.toContain('KINORA_DATA');
    expect((await run('list')).out).toMatch(
      /^\w{8} +sign-in .* valid until \d{4}-\d\d-\d\d \d\d:\d\d UTC$/m,
    );
  });

  it('names the folder of a database that it makes itself', async () => {
    const fresh = path.join(folder, 'fresh');
    const { code, out, said } = await run('list', { KINORA_DATA: fresh });
    expect(code).toBe(0);
    expect(out).toMatch(/^ID /);
    expect(said).toContain(`was made in ${fresh} (KINORA_DATA)`);
  });

  it('runs as a program', async () => {
    const { code, said } = await runProgram('keys', 'list', '-x');
    expect(code).toBe(2);
    expect(said).toContain("Unknown option '-x'");
  });
});

describe('beside a server', () => {
  let node: TestRelay;

  beforeAll(async () => {
    node = await startTestRelay({ folder, background: false });
  }, 60_000);
  afterAll(async () => {
    await node.stop();
  });

  it('says that the database is another process’s, where there is no control file', async () => {
    const { code, out, said } = await run('list');
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(said.trim().split('\n')).toHaveLength(1);
    expect(said).toMatch(/^BUSY: /);
    expect(said).toContain(String(process.pid));
  });

  it('asks the server, with the token of the control file', async () => {
    const { origin } = node;
    const { keys } = node.relay;
    await writeControl({ KINORA_DATA: folder, KINORA_PUBLIC_URL: undefined }, { origin });
    const file = path.join(folder, 'control.json');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readControl({ KINORA_DATA: folder })).toEqual({
      origin,
      publicUrl: origin,
      token: processControlToken(),
      pid: process.pid,
    });

    const created = await run('create --name Tab --kind worker --shared');
    expect(created.out).toMatch(/^kw_/);
    const caller = await keys.authenticate(`Bearer ${created.out.trim()}`, 'worker');
    expect(caller).toMatchObject({ owner: 'owner', shared: true });
    const id = created.out.slice(3, 11);
    const { out } = await run('list');
    expect(out).toMatch(new RegExp(`^${id} +worker, shared +owner +Tab`, 'm'));
    expect(out).toMatch(
      new RegExp(`^${made.slice(3, 11)} +api +ada +Bench +admin .* never +valid`, 'm'),
    );
    expect(out).not.toContain(made.slice(12));
    expect((await run(`revoke ${id}`)).code).toBe(0);
    for (const wrong of ['00000000', 'nope']) {
      const { code, said } = await run(`revoke ${wrong}`);
      expect(code).toBe(1);
      expect(said).toContain(`NOT_FOUND: There is no key with the id "${wrong}".`);
      expect(said).toContain('npm run keys -- list');
    }

    const link = await run('sign-in');
    expect(link.out.startsWith(`${origin}/keys#sign-in=ks_`)).toBe(true);
    const token = link.out.trim().split('=')[1] ?? '';
    expect((await keys.signIn(token)).owner).toBe('owner');
  });

  it('does not believe a control file whose process is gone, or that it cannot read', async () => {
    const file = path.join(folder, 'control.json');
    const written = await readFile(file, 'utf8');
    const child = spawn(process.execPath, ['-e', '']);
    await once(child, 'exit');
    const dead = written.replace(`"pid":${process.pid}`, `"pid":${child.pid}`);
    for (const content of [dead, '{', '{}']) {
      await writeFile(file, content);
      expect(await readControl({ KINORA_DATA: folder })).toBeNull();
    }
    await removeControl({ KINORA_DATA: folder });
    await stat(file); // another process's: left alone
    await writeFile(file, written);
    await removeControl({ KINORA_DATA: folder });
    await expect(stat(file)).rejects.toThrow('ENOENT');
  });
});
