import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type LockOptions, takeLock } from './lock';

/** One of the processes that race for a lock, in as many rounds as there are files `go-{round}`. */
const racer = `
  import { existsSync, writeFileSync } from 'node:fs';
  import { setTimeout as delay } from 'node:timers/promises';
  import { takeLock } from ${JSON.stringify(new URL('./lock.ts', import.meta.url).href)};
  const [folder, index] = process.argv.slice(1);
  const there = async (name) => {
    while (!existsSync(folder + '/' + name)) await delay(1);
  };
  for (let round = 0; ; round++) {
    await there('go-' + round);
    const release = await takeLock(folder + '/db.lock', 'It', { onLost() {} }).catch((error) => {
      if (!error.message.includes('is in use by process')) throw error;
    });
    const result = release ? 'taken' : 'refused';
    writeFileSync(folder + '/result-' + round + '-' + index + '-' + result, '');
    await there('done-' + round);
    await release?.();
  }
`;

describe.runIf(process.platform === 'linux')('takeLock', () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'kinora-lock-'));
    file = path.join(folder, 'db.lock');
  });
  afterEach(() => {
    rmSync(folder, { recursive: true, force: true });
    expect(lost.splice(0)).toEqual([]);
  });

  const lost: string[] = [];
  const take = (options: Partial<LockOptions> = {}) =>
    takeLock(file, 'It', { onLost: (sentence) => lost.push(sentence), ...options });
  /** Untouched for a minute. */
  const long = () => new Date(Date.now() - 60_000);
  /** Of a clock that is ahead: the age says nothing. */
  const ahead = () => new Date(Date.now() + 3_600_000);
  const elsewhere = { pid: 1, started: '1', machine: 'far boot pid:[1]' };

  /** A lock of another process, as this version writes it. */
  async function forge(changes: Record<string, unknown>): Promise<void> {
    const release = await take();
    const text = readFileSync(file, 'utf8');
    await release();
    writeFileSync(file, JSON.stringify({ ...JSON.parse(text), token: 'other', ...changes }));
  }

  it('belongs to one process, and is removed at its release', async () => {
    const release = await take();
    await expect(take()).rejects.toThrow(`It is in use by process ${process.pid}.`);
    await release();
    await (await take())();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('stays with a living process', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], {
      stdio: 'ignore',
    });
    await once(child, 'spawn');
    const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
    const started = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    await forge({ pid: child.pid, started });
    await expect(take()).rejects.toThrow(`in use by process ${child.pid}.`);
    rmSync(file, { force: true });
    await forge({ pid: child.pid, started });
    child.kill('SIGKILL');
    await once(child, 'exit');
    await (await take())();
  });

  it.each([
    ['of a process number that was given anew', { pid: 1, started: '1' }],
    ['of our own number before a restart', { pid: process.pid, started: '1' }],
  ])('is taken over when it is %s', async (_case, changes) => {
    await forge(changes);
    await (await take())();
  });

  it('that is half written is taken over', async () => {
    writeFileSync(file, '{"pid":');
    utimesSync(file, long(), long());
    await (await take({ touchMs: 20 }))();
  });

  it('that is being written is read once it is whole', async () => {
    const release = await take({ touchMs: 60_000 });
    const whole = readFileSync(file, 'utf8');
    writeFileSync(file, whole.slice(0, 20));
    const sentences: string[] = [];
    const onWait = (sentence: string) => {
      sentences.push(sentence);
      writeFileSync(file, whole);
    };
    await expect(take({ onWait, touchMs: 20 })).rejects.toThrow(`by process ${process.pid}.`);
    expect(sentences).toEqual([
      'It may be in use by another process: waiting up to 30 s to find out.',
    ]);
    await release();
  });

  it.each([
    ['of another container or machine', elsewhere, 'process 1 of another container or machine'],
    ['with our own number elsewhere', { ...elsewhere, pid: process.pid }, `${process.pid} of`],
  ])('%s lives as long as it is touched', async (_case, changes, name) => {
    await forge(changes);
    utimesSync(file, ahead(), ahead());
    let waited = 0;
    const touches = () => {
      waited++;
      utimesSync(file, new Date(), new Date());
    };
    await expect(take({ onWait: touches, touchMs: 20 })).rejects.toThrow(name);
    // The holder has just crashed: a new start waits until it is sure.
    utimesSync(file, ahead(), ahead());
    const release = await take({ onWait: () => waited++, touchMs: 20, goneMs: 50 });
    expect(waited).toBe(2);
    await expect(take()).rejects.toThrow(`in use by process ${process.pid}.`);
    await release();
    await forge(changes);
    utimesSync(file, long(), long());
    await (await take({ onWait: () => waited++, touchMs: 20 }))();
    expect(waited).toBe(2);
  });

  it('of a machine whose clock is behind lives as long as it is touched', async () => {
    await forge(elsewhere);
    let behind = Date.now() - 3_600_000;
    const touch = () => utimesSync(file, new Date(behind), new Date(behind++));
    touch();
    const touching = setInterval(touch, 5);
    try {
      await expect(take({ touchMs: 100 })).rejects.toThrow('It is in use by process 1 of another');
    } finally {
      clearInterval(touching);
    }
  });

  it.each([
    ['has it', () => writeFileSync(file, JSON.stringify({ ...elsewhere, token: 'other' }))],
    ['is done with it', () => rmSync(file)],
  ])('is lost, and said to be once, when another %s', async (_case, change) => {
    const release = await take({ touchMs: 10 });
    await delay(50);
    expect(lost).toEqual([]);
    change();
    const before = readdirSync(folder).map((name) => statSync(path.join(folder, name)).mtimeMs);
    await expect.poll(() => lost, { interval: 10, timeout: 10_000 }).toHaveLength(1);
    await delay(30);
    expect(lost.splice(0)).toEqual([
      `It no longer belongs to this process: ${file} was taken over or removed.`,
    ]);
    await release();
    // What is another's is neither touched nor removed.
    const after = readdirSync(folder).map((name) => statSync(path.join(folder, name)).mtimeMs);
    expect(after).toEqual(before);
  });

  it('is taken over by one of many processes, each time', {
    tags: ['full'],
    timeout: 60_000,
  }, async () => {
    const rounds = 8;
    const racers = Array.from({ length: 4 }, (_, index) =>
      spawn(
        process.execPath,
        ['--import', 'tsx/esm', '--input-type=module', '-e', racer, folder, `${index}`],
        { stdio: ['ignore', 'ignore', 'inherit'] },
      ),
    );
    const results = (round: number) =>
      readdirSync(folder).filter((name) => name.startsWith(`result-${round}-`));
    try {
      for (let round = 0; round < rounds; round++) {
        await forge({ pid: 1, started: '1', token: `dead ${round}` });
        writeFileSync(path.join(folder, `go-${round}`), '');
        await expect.poll(() => results(round), { interval: 2, timeout: 20_000 }).toHaveLength(4);
        const taken = results(round).filter((name) => name.endsWith('-taken'));
        expect(taken).toHaveLength(1);
        writeFileSync(path.join(folder, `done-${round}`), '');
        await expect.poll(() => existsSync(file), { interval: 2, timeout: 20_000 }).toBe(false);
      }
      expect(readdirSync(folder).filter((name) => name.startsWith('db.lock'))).toEqual([]);
    } finally {
      for (const child of racers) child.kill('SIGKILL');
    }
  });

  it('is taken over when a process died during its own takeover', async () => {
    const dead = () => {
      writeFileSync(file, 'half a lock');
      utimesSync(file, long(), long());
    };
    dead();
    const first = await take({ touchMs: 20 });
    const claim = readFileSync(file, 'utf8').replace(/"started":"\d+"/, '"started":"1"');
    await first();
    dead();
    const digest = createHash('sha256').update('half a lock').digest('hex');
    writeFileSync(`${file}.after-${digest}`, claim);
    const release = await take({ touchMs: 20 });
    await expect(take()).rejects.toThrow('is in use by process');
    await release();
    expect(readdirSync(folder)).toEqual([]);
  });
});
