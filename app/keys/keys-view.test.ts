import { describe, expect, it } from 'vitest';
import { createKeySchema, type KeyRecord } from '../../lib/contract/v3/endpoints';
import {
  allowedOf,
  emptyForm,
  lacksWorker,
  presets,
  requestOf,
  sharedSentence,
  signInToken,
  standingOf,
  workersSentence,
} from './keys-view';

const now = Date.parse('2026-06-01T12:00:00.000Z');
const before = '2026-06-01T11:00:00.000Z';
const later = '2026-06-01T13:00:00.000Z';
const record: KeyRecord = {
  id: 'abcdefgh',
  kind: 'api',
  owner: 'ada',
  name: 'Bench',
  hint: 'kn_abcdefgh…wxyz',
  scopes: [...presets.everyday.scopes],
  shared: false,
  created_at: before,
  expires_at: null,
  revoked_at: null,
  last_used_at: null,
};

describe('a request', () => {
  it('fits the contract, whatever was chosen', () => {
    const form = { ...emptyForm, name: '  Bench ', days: '30' };
    expect(createKeySchema.parse(requestOf(form))).toEqual({
      kind: 'api',
      name: 'Bench',
      shared: false,
      scopes: presets.everyday.scopes,
      expires_in_days: 30,
    });
    expect(requestOf({ ...form, kind: 'worker', days: '' })).toEqual({
      kind: 'worker',
      name: 'Bench',
      shared: false,
    });
  });

  it('is without administration unless that is chosen', () => {
    for (const [name, { scopes }] of Object.entries(presets)) {
      expect((scopes as readonly string[]).includes('admin')).toBe(name === 'admin');
    }
  });
});

describe('who sees prompts and images', () => {
  it('is said for every choice, differently', () => {
    const sentences = (['api', 'worker'] as const).flatMap((kind) =>
      [true, false].map((shared) => sharedSentence({ kind, shared })),
    );
    expect(new Set(sentences).size).toBe(4);
  });
});

describe('how a key stands', () => {
  it('follows from its dates', () => {
    expect(standingOf(record, now)).toBe('valid');
    expect(standingOf({ ...record, expires_at: later }, now)).toBe('valid');
    expect(standingOf({ ...record, expires_at: before }, now)).toBe('expired');
    expect(standingOf({ ...record, expires_at: before, revoked_at: before }, now)).toBe('revoked');
  });

  it('is valid for a sign-in that became a session', () => {
    const link: KeyRecord = { ...record, kind: 'sign-in', expires_at: before };
    expect(standingOf(link, now)).toBe('expired');
    expect(standingOf({ ...link, last_used_at: before }, now)).toBe('valid');
  });
});

describe('what a key may do', () => {
  it('is named as in the form, else by its scopes', () => {
    expect(allowedOf(record)).toBe(presets.everyday.name);
    expect(allowedOf({ ...record, scopes: [...record.scopes].reverse() })).toBe(
      presets.everyday.name,
    );
    expect(allowedOf({ ...record, scopes: ['webhooks:read'] })).toBe('webhooks:read');
    expect(allowedOf({ ...record, scopes: [] })).toBe('Nothing');
    expect(allowedOf({ ...record, kind: 'worker', scopes: [] })).toBe('Take jobs');
  });
});

describe('workers', () => {
  it('are counted, and said to be missing where none would take a job', () => {
    const idle = { state: 'idle' } as const;
    const paused = { state: 'paused' } as const;
    expect(workersSentence([])).toBe('None of your workers is connected.');
    expect(workersSentence([idle])).toBe('One of your workers is connected.');
    expect(workersSentence([paused])).toBe('One of your workers is connected, but paused.');
    expect(workersSentence([idle, paused])).toBe('2 of your workers are connected, 1 paused.');
    expect([[], [paused], [idle], [idle, paused]].map(lacksWorker)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});

describe('a sign-in link', () => {
  it('is told from other hashes', () => {
    expect(signInToken('#sign-in=ks_a_b')).toBe('ks_a_b');
    expect(signInToken('#keys')).toBeNull();
    expect(signInToken('')).toBeNull();
  });
});
