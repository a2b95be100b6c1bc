import { describe, expect, it } from 'vitest';
import { termsVersion } from '../../lib/contract';
import { createKeySchema, type KeyRecord } from '../../lib/contract/v3';
import {
  emptyForm,
  lacksWorker,
  permissionsOf,
  presets,
  requestOf,
  sharedSentence,
  signInToken,
  statusOf,
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
  terms_version: null,
  created_at: before,
  expires_at: null,
  revoked_at: null,
  last_used_at: null,
};

describe('a request', () => {
  it('is valid for every choice', () => {
    const form = { ...emptyForm, name: '  Bench ', days: '30' };
    expect(createKeySchema.parse(requestOf(form))).toEqual({
      kind: 'api',
      name: 'Bench',
      shared: false,
      accept_terms: termsVersion,
      scopes: presets.everyday.scopes,
      expires_in_days: 30,
    });
    expect(requestOf({ ...form, kind: 'worker', days: '' })).toEqual({
      kind: 'worker',
      name: 'Bench',
      shared: false,
      accept_terms: termsVersion,
    });
  });

  it('has the admin scope only in the admin preset', () => {
    for (const [name, { scopes }] of Object.entries(presets)) {
      expect((scopes as readonly string[]).includes('admin')).toBe(name === 'admin');
    }
  });
});

describe('who sees prompts and images', () => {
  it('has a different sentence for every choice', () => {
    const sentences = (['api', 'worker'] as const).flatMap((kind) =>
      [true, false].map((shared) => sharedSentence({ kind, shared })),
    );
    expect(new Set(sentences).size).toBe(4);
  });
});

describe('the status of a key', () => {
  it('follows from its dates', () => {
    expect(statusOf(record, now)).toBe('valid');
    expect(statusOf({ ...record, expires_at: later }, now)).toBe('valid');
    expect(statusOf({ ...record, expires_at: before }, now)).toBe('expired');
    expect(statusOf({ ...record, expires_at: before, revoked_at: before }, now)).toBe('revoked');
  });

  it('is valid for a used sign-in link', () => {
    const link: KeyRecord = { ...record, kind: 'sign-in', expires_at: before };
    expect(statusOf(link, now)).toBe('expired');
    expect(statusOf({ ...link, last_used_at: before }, now)).toBe('valid');
  });
});

describe('the permissions of a key', () => {
  it('are the name of a preset, or the scopes', () => {
    expect(permissionsOf(record)).toBe('Everything but administration');
    expect(permissionsOf({ ...record, scopes: [...record.scopes].reverse() })).toBe(
      'Everything but administration',
    );
    expect(permissionsOf({ ...record, scopes: ['webhooks:read'] })).toBe('webhooks:read');
    expect(permissionsOf({ ...record, scopes: [] })).toBe('Nothing');
    expect(permissionsOf({ ...record, kind: 'worker', scopes: [] })).toBe('Take jobs');
  });
});

describe('workers', () => {
  it('are counted, and missing if all are paused', () => {
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
  it('is distinguished from other hashes', () => {
    expect(signInToken('#sign-in=ks_a_b')).toBe('ks_a_b');
    expect(signInToken('#keys')).toBeNull();
    expect(signInToken('')).toBeNull();
  });
});
