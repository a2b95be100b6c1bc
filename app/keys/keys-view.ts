import {
  type KeyRecord,
  type Scope,
  scopes,
  type WorkerRecord,
} from '../../lib/contract/v3/endpoints';
import type { KeyRequest } from './admin-client';

const everyday: readonly Scope[] = scopes.filter((scope) => scope !== 'admin');

/** What people want a key for, instead of six switches. */
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
    hint: 'Sees predictions and their videos; changes nothing.',
    scopes: ['predictions:read'],
  },
  admin: {
    name: 'Everything, with this page',
    hint: 'Makes and revokes keys. Whoever has it can let themselves in.',
    scopes,
  },
} as const satisfies Record<string, { name: string; hint: string; scopes: readonly Scope[] }>;
export type Preset = keyof typeof presets;

/** Choices of when a key ends, in days; empty for never. */
export const lifetimes = [
  { days: '', name: 'Never' },
  { days: '30', name: 'In 30 days' },
  { days: '90', name: 'In 90 days' },
  { days: '365', name: 'In a year' },
] as const;

/** The form as it was filled in. */
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

/** What the server is asked for. */
export function requestOf({ kind, name, preset, shared, days }: KeyForm): KeyRequest {
  return {
    kind,
    name: name.trim(),
    shared,
    ...(kind === 'api' && { scopes: [...presets[preset].scopes] }),
    ...(days !== '' && { expires_in_days: Number(days) }),
  };
}

/** Who can see prompts and images, in one sentence for each choice. */
export function sharedSentence({ kind, shared }: Pick<KeyForm, 'kind' | 'shared'>): string {
  if (kind === 'api') {
    return shared
      ? 'Other owners’ shared workers may take its jobs too, and whoever runs them can see its prompts and images.'
      : 'Only your own workers take its jobs, so nobody else sees its prompts and images.';
  }
  return shared
    ? 'It also takes jobs of other owners who allow it, and you can then see their prompts and images.'
    : 'It takes your own jobs only.';
}

/** How a key stands. */
export type Standing = 'valid' | 'revoked' | 'expired';

/** @param now Unix milliseconds */
export function standingOf(record: KeyRecord, now: number): Standing {
  if (record.revoked_at !== null) return 'revoked';
  const ended = record.expires_at !== null && Date.parse(record.expires_at) <= now;
  return ended && !isSession(record) ? 'expired' : 'valid';
}

/** Whether a sign-in link was used: it has become a session, which the link's hour does not end. */
export function isSession(record: KeyRecord): boolean {
  return record.kind === 'sign-in' && record.last_used_at !== null;
}

export const kindNames = {
  api: 'API key',
  worker: 'Worker token',
  'sign-in': 'Sign-in',
} as const satisfies Record<KeyRecord['kind'], string>;

/** What a key may do, in the words of the form where it was made with them. */
export function allowedOf(record: KeyRecord): string {
  if (record.kind === 'worker') return 'Take jobs';
  if (record.kind === 'sign-in') return 'This page';
  const held = [...record.scopes].sort().join();
  const preset = Object.values(presets).find(({ scopes }) => [...scopes].sort().join() === held);
  return preset?.name ?? (record.scopes.join(', ') || 'Nothing');
}

/** How many of the owner's workers are there, as a sentence. */
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

/** Whether a prediction would wait in vain. */
export function lacksWorker(workers: readonly Pick<WorkerRecord, 'state'>[]): boolean {
  return workers.every(({ state }) => state === 'paused');
}

/** The sign-in token in an address's hash; null where there is none. */
export function signInToken(hash: string): string | null {
  return /^#sign-in=([^&]+)$/.exec(hash)?.[1] ?? null;
}
