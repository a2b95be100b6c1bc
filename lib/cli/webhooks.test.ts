/** @module-tag full */
import { once } from 'node:events';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { removeControl, writeControl } from '../../relay/access/control';
import { deliveries } from '../../relay/store/schema';
import { pgliteTemplate } from '../../relay/testing/pglite';
import { startTestRelay, type TestRelay } from '../../relay/testing/server';
import { newDelivery, rowOf } from '../../relay/webhooks/testing/webhooks';
import { runLine, runProgram } from './testing/relay-command';
import { webhooksCommand } from './webhooks';

let folder = '';
let node: TestRelay;
const exhausted = newDelivery('https://hooks.example.com/a?token=secret', {
  status: 'exhausted',
  attempts: 4,
  lastStatus: 500,
  lastAnswer: 'Out of\n\u001b[31mservice',
  createdAt: new Date('2030-01-02T03:04:05Z'),
});
const delivered = newDelivery('https://hooks.example.com/b', {
  status: 'delivered',
  attempts: 1,
  lastStatus: 200,
  createdAt: new Date('2030-01-01T00:00:00Z'),
});

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kinora-webhooks-cli-'));
  await cp(await pgliteTemplate(), folder, { recursive: true });
  node = await startTestRelay({ folder, background: false });
  await node.relay.store.db.insert(deliveries).values([exhausted, delivered]);
}, 60_000);
afterAll(async () => {
  await node.stop();
  await rm(folder, { recursive: true, force: true });
});

const run = (line: string) => runLine(webhooksCommand, folder, line);

describe('what is typed', () => {
  test('is helped with', async () => {
    for (const line of ['', '--help', 'list -h']) {
      const { code, out } = await run(line);
      expect(code).toBe(0);
      expect(out).toContain('npm run webhooks -- replay ID');
    }
  });

  test.each([
    ['list --state due', "Unknown option '--state'"],
    ['list --status done', '--status must be due, delivered or exhausted.'],
    ['list --page 0', '--page must be a whole number from 1.'],
    ['list now', 'list takes nothing but options.'],
    ['retry', 'There is no command "retry".'],
    ['--page 2', 'There is no command "".'],
    ['replay', 'replay needs the id'],
    ['replay msg_1', 'replay needs the id'],
    [`replay ${exhausted.id} --page 2`, '--page is an option of "list" only.'],
    [`replay ${exhausted.id} ${delivered.id}`, 'replay takes one id.'],
  ])('is refused with a sentence: %s', async (line, sentence) => {
    const { code, out, said } = await run(line);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(said).toContain(sentence);
  });

  test('runs as a program', async () => {
    const { code, said } = await runProgram('webhooks', 'list x');
    expect(code).toBe(2);
    expect(said).toContain('There is no command "list x".');
  });
});

describe('beside a server', () => {
  test('asks the server, with the token of the control file', async () => {
    const config = { KINORA_DATA: folder, KINORA_PUBLIC_URL: undefined };
    await writeControl(config, { origin: node.origin });
    const all = await run('list');
    expect(all.code).toBe(0);
    const [head, ...lines] = all.out.trimEnd().split('\n');
    expect(head).toMatch(/^ID +STATUS +ATTEMPTS +CREATED +NEXT +LAST +RECEIVER +ANSWER$/);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(
      new RegExp(
        `^${exhausted.id} +exhausted +4 +2030-01-02 03:04 +- +500 +hooks.example.com/a +Out of \\[31mservice$`,
      ),
    );
    expect((await run('list --status exhausted')).out).not.toContain(delivered.id);

    const replayed = await run(`replay ${exhausted.id}`);
    expect(replayed).toMatchObject({ code: 0, said: `${exhausted.id} is being sent again.\n` });
    expect(replayed.out).toMatch(new RegExp(`^${exhausted.id} +due +4`, 'm'));
    expect(await rowOf(node.relay.store, exhausted.id)).toMatchObject({ status: 'due' });
    expect((await run(`replay msg_${'0'.repeat(32)}`)).said).toContain(
      'There is no webhook with this id.',
    );
    // This process lives, but nothing answers at the address.
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as AddressInfo;
    closed.close();
    await writeControl(config, { origin: `http://127.0.0.1:${port}` });
    expect((await run('list')).said).toContain(String(process.pid));
    await removeControl(config);
  });
});

test('without a server the database is opened', async () => {
  await node.stop();
  const replayed = await run(`replay ${delivered.id}`);
  expect(replayed.said).toBe(`${delivered.id} is sent again when a server runs.\n`);
  const { out } = await run('list --status due');
  expect(out).toContain(delivered.id);
  expect((await run('list --page 9')).said).toBe('There are no such webhooks.\n');
});
