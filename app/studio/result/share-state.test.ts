import { expect, test } from 'vitest';
import type { Share } from '../../../lib/contract/v3';
import { changeShare, type ShareEvent, type ShareState } from './share-state';

const link = { url: 'https://kinora.example/s/1' } as Share;
const after = (...events: ShareEvent[]) =>
  events.reduce<ShareState>(changeShare, { status: 'closed' });

test('an upload tells how much is sent, and ends with a link', () => {
  const sent: ShareEvent = { type: 'sent', fraction: 0.5 };
  expect(after({ type: 'opened' }, { type: 'started' }, sent)).toEqual({
    status: 'uploading',
    sent: 0.5,
  });
  const done = after({ type: 'opened' }, { type: 'started' }, { type: 'shared', link });
  expect(changeShare(done, { type: 'copied' })).toEqual({ status: 'shared', link, copied: true });
});

test('what a cancelled upload still reports changes nothing', () => {
  const closed = after({ type: 'opened' }, { type: 'started' }, { type: 'closed' });
  const late: ShareEvent[] = [
    { type: 'sent', fraction: 1 },
    { type: 'shared', link },
    { type: 'failed', problem: 'It failed.' },
  ];
  for (const event of late) expect(changeShare(closed, event)).toEqual({ status: 'closed' });
});
