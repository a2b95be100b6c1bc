import { DrizzleQueryError } from 'drizzle-orm';
import { describe, expect, it } from 'vitest';
import { createLog } from './log';

/** Everything that a log at `level` writes. */
function written(
  level: 'info' | 'warn',
  write: (log: ReturnType<typeof createLog>) => void,
): { text: string; entries: Record<string, unknown>[] } {
  let text = '';
  write(createLog({ KINORA_LOG: level }, { write: (line) => (text += line) }));
  const entries = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { text, entries };
}

describe('the log', () => {
  it('writes one JSON object a line, with a level by name and an ISO time', () => {
    const { entries } = written('info', (log) => {
      log.info({ request_id: 'abc' }, 'first');
      log.debug('not asked for');
      log.warn('second');
    });
    expect(entries).toMatchObject([
      { level: 'info', request_id: 'abc', msg: 'first', time: expect.stringMatching(/Z$/) },
      { level: 'warn', msg: 'second' },
    ]);
  });

  it('leaves secrets and what people wrote out, on every level of an entry', () => {
    const { text, entries } = written('info', (log) => {
      log.info({
        token: 'hush-1',
        headers: { authorization: 'Bearer hush-2', 'set-cookie': 'hush-3' },
        job: { input: { prompt: 'hush-4', image: 'hush-5', steps: 30 } },
      });
    });
    expect(text).not.toContain('hush');
    expect(entries[0]).toMatchObject({ job: { input: { steps: 30 } } });
  });

  it('logs a failed query without its values', () => {
    const fields = { code: '53100', detail: 'hush-row', query: 'insert', params: ['hush-prompt'] };
    const cause = Object.assign(new Error('the disk is full'), fields);
    const params = ['hush-prompt\n    at hush'];
    const error = new DrizzleQueryError('insert into jobs values ($1)', params, cause);
    expect(error.stack).toContain('    at hush');
    const { text, entries } = written('info', (log) => log.error({ err: error }, 'failed'));
    expect(text).not.toContain('hush');
    expect(entries[0]).toMatchObject({
      err: {
        message: 'Failed query: insert into jobs values ($1)',
        stack: expect.stringContaining('    at '),
        cause: { message: 'the disk is full', code: '53100' },
      },
    });
  });
});
