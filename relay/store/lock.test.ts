import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { takeLock } from './lock';

describe('takeLock', () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'kinora-lock-'));
    file = path.join(folder, 'db.lock');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** A lock of another process, as this version writes it. */
  async function forge(changes: Record<string, unknown>): Promise<void> {
    const lock = await takeLock(file, 'It');
    const text = readFileSync(file, 'utf8');
    await lock.release();
    writeFileSync(file, JSON.stringify({ ...JSON.parse(text), token: 'other', ...changes }));
  }

  it('is held by one, and leaves nothing behind', async () => {
    const lock = await takeLock(file, 'The database');
    await expect(takeLock(file, 'The database')).rejects.toThrow(
      `The database is in use by process ${process.pid}.`,
    );
    await lock.release();
    await (await takeLock(file, 'The database')).release();
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
    await expect(takeLock(file, 'It')).rejects.toThrow(`in use by process ${child.pid}.`);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await (await takeLock(file, 'It')).release();
  });

  it.each([
    ['of a process number that was given anew', { pid: 1, startTicks: '1' }],
    ['of our own number before a restart', { pid: process.pid, startTicks: '1' }],
    ['of an earlier boot', { pid: 1, bootId: 'an earlier one' }],
  ])('is taken over when it is %s', async (_case, changes) => {
    await forge(changes);
    await (await takeLock(file, 'It')).release();
  });

  it('is taken over when nobody could have written it', async () => {
    writeFileSync(file, '{"pid":');
    await (await takeLock(file, 'It')).release();
  });

  it('of another machine lives as long as it is touched', async () => {
    await forge({ host: `not-${hostname()}`, pid: 1 });
    await expect(takeLock(file, 'It')).rejects.toThrow(`process 1 on not-${hostname()}`);
    const long = new Date(Date.now() - 60_000);
    utimesSync(file, long, long);
    await (await takeLock(file, 'It')).release();
  });

  it('is taken over by one of many, each time', async () => {
    for (let round = 0; round < 30; round++) {
      await forge({ pid: 1, startTicks: '1', token: `dead ${round}` });
      const all = await Promise.allSettled(Array.from({ length: 12 }, () => takeLock(file, 'It')));
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
    const dead = () => writeFileSync(file, 'half a lock');
    dead();
    const first = await takeLock(file, 'It');
    const claim = readFileSync(file, 'utf8').replace(/"startTicks":"\d+"/, '"startTicks":"1"');
    await first.release();
    dead();
    const digest = createHash('sha256').update('half a lock').digest('hex').slice(0, 16);
    writeFileSync(`${file}.after-${digest}`, claim);
    const lock = await takeLock(file, 'It');
    await expect(takeLock(file, 'It')).rejects.toThrow('is in use by process');
    await lock.release();
    expect(readdirSync(folder)).toEqual([]);
  });
});
