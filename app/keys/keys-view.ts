import { termsVersion } from '../../lib/contract';
import {
  type KeyRecord,
  type Scope,
  type ShareRecord,
  scopes,
  type WorkerRecord,
} from '../../lib/contract/v3';
import { type TextKey, t } from '../texts';
import '../texts/en/keys';
import { formatDate } from '../texts/format';
import type { KeyRequest } from './admin-client';

const everyday: readonly Scope[] = scopes.filter((scope) => scope !== 'admin');

/** Sets of scopes for typical uses of a key. */
export const presets = {
  everyday: {
    name: 'keys.presetEveryday',
    hint: 'keys.presetEverydayHint',
    scopes: everyday,
  },
  submit: {
    name: 'keys.presetSubmit',
    hint: 'keys.presetSubmitHint',
    scopes: ['predictions:write', 'predictions:read', 'uploads:write'],
  },
  read: {
    name: 'keys.presetRead',
    hint: 'keys.presetReadHint',
    scopes: ['predictions:read'],
  },
  admin: {
    name: 'keys.presetAdmin',
    hint: 'keys.presetAdminHint',
    scopes,
  },
} as const satisfies Record<string, { name: TextKey; hint: TextKey; scopes: readonly Scope[] }>;
export type Preset = keyof typeof presets;

/** Choices of a key's lifetime in days; empty means unlimited. */
export const lifetimes = [
  { days: '', name: 'keys.never' },
  { days: '30', name: 'keys.in30Days' },
  { days: '90', name: 'keys.in90Days' },
  { days: '365', name: 'keys.inAYear' },
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
    return shared ? t('keys.sharedApi') : t('keys.ownApi');
  }
  return shared ? t('keys.sharedWorker') : t('keys.ownWorker');
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
  api: 'keys.kindApi',
  worker: 'keys.kindWorker',
  'sign-in': 'keys.kindSignIn',
} as const satisfies Record<KeyRecord['kind'], TextKey>;

/** What a key may do: the name of its preset, or its scopes. */
export function permissionsOf(record: KeyRecord): string {
  if (record.kind === 'worker') return t('keys.mayTakeJobs');
  if (record.kind === 'sign-in') return t('keys.mayUsePage');
  const own = [...record.scopes].sort().join();
  const preset = Object.values(presets).find(({ scopes }) => [...scopes].sort().join() === own);
  return preset ? t(preset.name) : record.scopes.join(', ') || t('keys.mayNothing');
}

/** The number of the owner's workers, as a sentence. */
export function workersSentence(workers: readonly Pick<WorkerRecord, 'state'>[]): string {
  const paused = workers.filter(({ state }) => state === 'paused').length;
  const values = { count: workers.length, paused };
  if (paused === 0) return t('keys.workersConnected', values);
  return paused === workers.length
    ? t('keys.workersPaused', values)
    : t('keys.workersSomePaused', values);
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
  return formatDate(iso, { dateStyle: 'medium' });
}

export function momentOf(iso: string): string {
  return formatDate(iso, { dateStyle: 'medium', timeStyle: 'short' });
}

/** What a link shows besides the video. */
export function shownSentence({ prompt, settings, image }: ShareRecord['include']): string {
  const shown = [
    t('keys.showsVideo'),
    ...(prompt ? [t('keys.showsPrompt')] : []),
    ...(settings ? [t('keys.showsSettings')] : []),
    ...(image ? [t('keys.showsImage')] : []),
  ];
  return shown.length === 1
    ? t('keys.showsOnlyVideo')
    : shown.reduce((first, second) => t('shared.listOf', { first, second }));
}
