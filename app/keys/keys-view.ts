import { termsVersion } from '../../lib/contract/terms';
import {
  type KeyRecord,
  type Scope,
  scopes,
  type WorkerRecord,
} from '../../lib/contract/v3/endpoints';
import type { ShareRecord } from '../../lib/contract/v3/share';
import type { KeyRequest } from './admin-client';

const everyday: readonly Scope[] = scopes.filter((scope) => scope !== 'admin');

/** Sets of scopes for typical uses of a key. */
export const presets = {
  everyday: {
    name: 'Everything but administration',
    hint: 'Submit, read, upload, webhooks. Right for most programs.',
    scopes: everyday,
  },
  submit: {
    name: 'Submit and read',
    hint: 'No access to webhook secrets and deliveries.',
    scopes: ['predictions:write', 'predictions:read', 'uploads:write'],
  },
  read: {
    name: 'Read only',
    hint: 'Reads predictions and their videos; changes nothing.',
    scopes: ['predictions:read'],
  },
  admin: {
    name: 'Everything, with this page',
    hint: 'Creates and revokes keys. It is also valid for signing in here.',
    scopes,
  },
} as const satisfies Record<string, { name: string; hint: string; scopes: readonly Scope[] }>;
export type Preset = keyof typeof presets;

/** Choices of a key's lifetime in days; empty means unlimited. */
export const lifetimes = [
  { days: '', name: 'Never' },
  { days: '30', name: 'In 30 days' },
  { days: '90', name: 'In 90 days' },
  { days: '365', name: 'In a year' },
] as const;

/** Values of the form. */
export interface KeyForm {
  readonly kind: 'api' | 'worker';
  readonly name: string;
  readonly preset: Preset;
  readonly shared: boolean;
  /** One of {@link lifetimes}. */
  readonly days: string;
}
export const emptyForm: KeyForm = {
  kind: 'api',
  name: '',
  preset: 'everyday',
  shared: false,
  days: '',
};

/** The request for the server, for a user who has accepted the terms of use. */
export function requestOf({ kind, name, preset, shared, days }: KeyForm): KeyRequest {
  return {
    kind,
    name: name.trim(),
    shared,
    accept_terms: termsVersion,
    ...(kind === 'api' && { scopes: [...presets[preset].scopes] }),
    ...(days !== '' && { expires_in_days: Number(days) }),
  };
}

/** Who can see prompts and images, for each choice of the form. */
export function sharedSentence({ kind, shared }: Pick<KeyForm, 'kind' | 'shared'>): string {
  if (kind === 'api') {
    return shared
      ? 'Shared workers of other owners may take its jobs too, and those owners can see its prompts and images.'
      : 'Only your own workers take its jobs, so no one else sees its prompts and images.';
  }
  return shared
    ? 'It also takes jobs of other owners who allow it, and you can then see their prompts and images.'
    : 'It takes your own jobs only.';
}

/** Status of a key. */
export type KeyStatus = 'valid' | 'revoked' | 'expired';

/** @param now Unix milliseconds */
export function statusOf(record: KeyRecord, now: number): KeyStatus {
  if (record.revoked_at !== null) return 'revoked';
  const ended = record.expires_at !== null && Date.parse(record.expires_at) <= now;
  return ended && !isSession(record) ? 'expired' : 'valid';
}

/** Whether a sign-in link was used. It is then a session, which outlives the link's one hour. */
export function isSession(record: KeyRecord): boolean {
  return record.kind === 'sign-in' && record.last_used_at !== null;
}

export const kindNames = {
  api: 'API key',
  worker: 'Worker token',
  'sign-in': 'Sign-in',
} as const satisfies Record<KeyRecord['kind'], string>;

/** What a key may do: the name of its preset, or its scopes. */
export function permissionsOf(record: KeyRecord): string {
  if (record.kind === 'worker') return 'Take jobs';
  if (record.kind === 'sign-in') return 'This page';
  const own = [...record.scopes].sort().join();
  const preset = Object.values(presets).find(({ scopes }) => [...scopes].sort().join() === own);
  return preset?.name ?? (record.scopes.join(', ') || 'Nothing');
}

/** The number of the owner's workers, as a sentence. */
export function workersSentence(workers: readonly Pick<WorkerRecord, 'state'>[]): string {
  const paused = workers.filter(({ state }) => state === 'paused').length;
  if (workers.length === 0) return 'None of your workers is connected.';
  const connected =
    workers.length === 1
      ? 'One of your workers is connected'
      : `${workers.length} of your workers are connected`;
  if (paused === 0) return `${connected}.`;
  return paused === workers.length
    ? `${connected}, but paused.`
    : `${connected}, ${paused} paused.`;
}

/** Whether no worker would take a job. */
export function lacksWorker(workers: readonly Pick<WorkerRecord, 'state'>[]): boolean {
  return workers.every(({ state }) => state === 'paused');
}

/** The sign-in token in the hash of a URL; null if there is none. */
export function signInToken(hash: string): string | null {
  return /^#sign-in=([^&]+)$/.exec(hash)?.[1] ?? null;
}

export function dayOf(iso: string): string {
  return new Date(iso).toLocaleDateString(undefined, { dateStyle: 'medium' });
}

export function momentOf(iso: string): string {
  return new Date(iso).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
}

/** What a link shows besides the video. */
export function shownSentence({ prompt, settings, image }: ShareRecord['include']): string {
  const shown = [
    ...(prompt ? ['prompt'] : []),
    ...(settings ? ['settings'] : []),
    ...(image ? ['start image'] : []),
  ];
  return shown.length === 0 ? 'Only the video' : `Video, ${shown.join(', ')}`;
}
