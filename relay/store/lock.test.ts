import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type LockOptions, takeLock } from './lock';

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
  /** As nobody has touched it for a minute. */
  const long = () => new Date(Date.now() - 60_000);
  /** A clock that is ahead: whoever looks must wait to know. */
  const ahead = () => new Date(Date.now() + 3_600_000);
  const pidSpace = process.platform === 'linux' ? readlinkSync('/proc/self/ns/pid') : null;
  const elsewhere = { pid: 1, startTicks: '1', pidSpace: 'pid:[1]' };

  /** A lock of another process, as this version writes it. */
  async function forge(changes: Record<string, unknown>): Promise<void> {
    const lock = await take();
    const text = readFileSync(file, 'utf8');
    await lock.release();
    writeFileSync(file, JSON.stringify({ ...JSON.parse(text), token: 'other', ...changes }));
  }

  it('is held by one, and leaves nothing behind', async () => {
    const lock = await take();
    await expect(take()).rejects.toThrow(`It is in use by process ${process.pid}.`);
    await lock.release();
    await (await take()).release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('stays with a living process', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], {
      stdio: 'ignore',
    });
    await once(child, 'spawn');
    const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
    const startTicks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    await forge({ pid: child.pid, startTicks });
    await expect(take()).rejects.toThrow(`in use by process ${child.pid}.`);
    // As it was written before PID namespaces were told, and touched less often.
    await rm(file);
    await forge({ pid: child.pid, startTicks, pidSpace: undefined });
    utimesSync(file, long(), long());
    await expect(take({ touchMs: 20 })).rejects.toThrow(`in use by process ${child.pid} of`);
    await rm(file);
    await forge({ pid: child.pid, startTicks });
    child.kill('SIGKILL');
    await once(child, 'exit');
    await (await take()).release();
  });

  it.each([
    ['of a process number that was given anew', { pid: 1, startTicks: '1' }],
    ['of our own number before a restart', { pid: process.pid, startTicks: '1' }],
  ])('is taken over when it is %s', async (_case, changes) => {
    await forge(changes);
    await (await take()).release();
  });

  it('is taken over when nobody could have written it', async () => {
    writeFileSync(file, '{"pid":');
    utimesSync(file, long(), long());
    await (await take({ touchMs: 20 })).release();
  });

  it('that is written just now is read once it is whole', async () => {
    const lock = await take({ touchMs: 60_000 });
    const whole = readFileSync(file, 'utf8');
    writeFileSync(file, whole.slice(0, 20));
    const sentences: string[] = [];
    const onWait = (sentence: string) => {
      sentences.push(sentence);
      writeFileSync(file, whole);
    };
    await expect(take({ onWait, touchMs: 20 })).rejects.toThrow(`by process ${process.pid}.`);
    expect(sentences).toEqual([
      'It may be in use by another process: looking for up to 30 s whether it is.',
    ]);
    await lock.release();
  });

  it.each([
    ['of another machine', { host: 'far' }, 'process 1 on far'],
    ['of another container', {}, `process 1 of another container or machine named ${hostname()}`],
    ['of before PID namespaces were told', { pidSpace: undefined }, 'process 1 of another'],
    ['of a machine of the same name', { pidSpace, bootId: 'b' }, 'process 1 of another'],
    ['with our own number elsewhere', { pid: process.pid }, `process ${process.pid} of another`],
  ])('%s lives as long as it is touched', async (_case, changes, name) => {
    await forge({ ...elsewhere, ...changes });
    utimesSync(file, ahead(), ahead());
    let waited = 0;
    const touches = () => {
      waited++;
      utimesSync(file, new Date(), new Date());
    };
    await expect(take({ onWait: touches, touchMs: 20 })).rejects.toThrow(`in use by ${name}`);
    // A crash just now: whoever starts again waits until it is known.
    utimesSync(file, ahead(), ahead());
    const lock = await take({ onWait: () => waited++, touchMs: 20, goneMs: 50 });
    expect(waited).toBe(2);
    await expect(take()).rejects.toThrow(`in use by process ${process.pid}.`);
    await lock.release();
    await forge({ ...elsewhere, ...changes });
    utimesSync(file, long(), long());
    await (await take({ onWait: () => waited++, touchMs: 20 })).release();
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

  it('is touched anew by whoever takes it over after a long wait', async () => {
    await forge(elsewhere);
    utimesSync(file, ahead(), ahead());
    const onWait = () => {
      for (const name of readdirSync(folder)) {
        if (name !== 'db.lock') utimesSync(path.join(folder, name), long(), long());
      }
    };
    const lock = await take({ onWait, touchMs: 20, goneMs: 50 });
    expect(Date.now() - statSync(file).mtimeMs).toBeLessThan(30_000);
    await lock.release();
  });

  it.each([
    ['has it', () => writeFileSync(file, JSON.stringify({ ...elsewhere, token: 'other' }))],
    ['is done with it', () => rmSync(file)],
  ])('is lost, and said to be once, when another %s', async (_case, change) => {
    const lock = await take({ touchMs: 10 });
    await delay(50);
    expect(lost).toEqual([]);
    change();
    const before = readdirSync(folder).map((name) => statSync(path.join(folder, name)).mtimeMs);
    await expect.poll(() => lost, { interval: 10, timeout: 10_000 }).toHaveLength(1);
    await delay(30);
    expect(lost.splice(0)).toEqual([
      `It is not this process's any more: its lock ${file} was taken over or removed.`,
    ]);
    await lock.release();
    // What is another's is neither touched nor removed.
    const after = readdirSync(folder).map((name) => statSync(path.join(folder, name)).mtimeMs);
    expect(after).toEqual(before);
  });

  it('is taken over by one of many, each time', async () => {
    for (let round = 0; round < 30; round++) {
      await forge({ pid: 1, startTicks: '1', token: `dead ${round}` });
      const all = await Promise.allSettled(Array.from({ length: 12 }, () => take()));
      const taken = all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      expect(taken).toHaveLength(1);
      for (const one of all) {
        if (one.status === 'rejected') expect(String(one.reason)).toContain('is in use by process');
      }
      await taken[0]?.release();
      expect(readdirSync(folder)).toEqual([]);
    }
  });

  it('is taken over when whoever was taking it over has died, too', async () => {
    const dead = () => {
      writeFileSync(file, 'half a lock');
      utimesSync(file, long(), long());
    };
    dead();
    const first = await take({ touchMs: 20 });
    const claim = readFileSync(file, 'utf8').replace(/"startTicks":"\d+"/, '"startTicks":"1"');
    await first.release();
    dead();
    const digest = createHash('sha256').update('half a lock').digest('hex').slice(0, 16);
    writeFileSync(`${file}.after-${digest}`, claim);
    const lock = await take({ touchMs: 20 });
    await expect(take()).rejects.toThrow('is in use by process');
    await lock.release();
    expect(readdirSync(folder)).toEqual([]);
  });
});
