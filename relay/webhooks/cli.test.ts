import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApiError } from '../../lib/contract/v3';
import { serve } from '../guard/testing/server';
import { removeControl, writeControl } from '../keys/control';
import { deliveries } from '../store/schema';
import { openTestStore, type TestStore } from '../testing/store';
import { runWebhooks } from './cli-run';
import { newDelivery, rowOf, webhooksOn } from './testing';

let fixture: TestStore;
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
  fixture = await openTestStore('pglite');
  await fixture.store.db.insert(deliveries).values([exhausted, delivered]);
}, 60_000);
afterAll(() => fixture.close());

/** Runs a command in this process. */
async function run(line: string, more: Record<string, string> = {}) {
  const said = { out: '', words: '' };
  const code = await runWebhooks(line.split(' ').filter(Boolean), {
    environment: { KINORA_DATA: fixture.settings.KINORA_DATA, ...more },
    out: (part) => {
      said.out += part;
    },
    say: (part) => {
      said.words += part;
    },
  });
  return { code, ...said };
}

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
    const { code, out, words } = await run(line);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(words).toContain(sentence);
  });

  test('runs as a program', async () => {
    const child = spawn(process.execPath, ['--import', 'tsx', 'relay/webhooks/cli.ts', 'list x'], {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
    expect(code).toBe(2);
    expect(said).toContain('There is no command "list x".');
  });
});

describe('beside a server', () => {
  test('without its control file, the database is another process’s', async () => {
    const { code, out, words } = await run('list');
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(words).toContain(String(process.pid));
  });

  test('asks the server, with the token of the control file', async () => {
    const { webhooks } = webhooksOn(fixture.store);
    const asked: (string | undefined)[] = [];
    const server = await serve((request, response) => {
      const url = new URL(request.url ?? '', 'http://server');
      asked.push(`${request.method} ${url.pathname}`);
      const answer = async () => {
        if (url.pathname === '/healthz') return {};
        if (request.headers.authorization !== 'Bearer control-token') {
          throw new ApiError('UNAUTHORIZED');
        }
        if (request.method === 'POST') return webhooks.replay(url.pathname.split('/')[5] ?? '');
        const status = url.searchParams.get('status') === 'exhausted' ? 'exhausted' : undefined;
        const items = await webhooks.list(undefined, { page: 1, pageSize: 50, status });
        return { page: 1, items };
      };
      void answer().then(
        (data) => response.end(JSON.stringify({ code: 200, message: 'success', data })),
        (error: ApiError) => {
          response.writeHead(error.status).end(JSON.stringify(error.toBody('test')));
        },
      );
    });
    const config = { KINORA_DATA: fixture.settings.KINORA_DATA, KINORA_PUBLIC_URL: undefined };
    await writeControl(config, { origin: server.origin, token: 'control-token' });
    try {
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
      expect(replayed).toMatchObject({ code: 0, words: `${exhausted.id} is being sent again.\n` });
      expect(replayed.out).toMatch(new RegExp(`^${exhausted.id} +due +4`, 'm'));
      expect(await rowOf(fixture.store, exhausted.id)).toMatchObject({ status: 'due' });
      expect((await run(`replay msg_${'0'.repeat(32)}`)).words).toContain(
        'There is no webhook with this id.',
      );
      expect(asked).toContain('GET /api/v3/webhook/deliveries');
      expect(asked).toContain(`POST /api/v3/webhook/deliveries/${exhausted.id}/replay`);
    } finally {
      await server.close();
    }
    // Its process lives, but nobody answers there any more.
    expect((await run('list')).words).toContain(String(process.pid));
    await removeControl(config);
  });
});

test('without a server the database is opened', async () => {
  await fixture.store.close();
  const replayed = await run(`replay ${delivered.id}`);
  expect(replayed.words).toBe(`${delivered.id} is sent again when a server runs.\n`);
  const { out } = await run('list --status due');
  expect(out).toContain(delivered.id);
  expect((await run('list --page 9')).words).toBe('There are no such webhooks.\n');
});
