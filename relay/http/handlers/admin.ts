import { termsVersion } from '../../../lib/contract';
import { ApiError } from '../../../lib/contract/v3';
import { type Caller, firstOwner } from '../../access/caller';
import { requireOwnOrigin } from '../../access/keys';
import { invalidField } from '../../files/requests';
import { success } from '../reply';
import type { Handlers } from './index';

const dayMs = 24 * 3_600_000;

/** Sessions, keys and workers of an owner. */
export const adminHandlers = {
  /** `POST /api/admin/session`: the only answer of the API that sets a cookie. */
  signIn: async ({ keys, config }, { request, body }) => {
    // Another site must not sign this browser in to its own session. Commands send neither header.
    const isPage = request.headers.has('origin') || request.headers.has('sec-fetch-site');
    if (isPage) requireOwnOrigin(request, config.KINORA_PUBLIC_URL);
    const { owner, setCookie } = await keys.signIn(body.token.trim());
    return success({ owner }, { 'Set-Cookie': setCookie });
  },

  signOut: async ({ keys, config }, { request }) => {
    requireOwnOrigin(request, config.KINORA_PUBLIC_URL);
    const setCookie = await keys.signOut(request.headers.get('cookie'));
    return success({}, { 'Set-Cookie': setCookie });
  },

  listKeys: async ({ keys }, { caller }) => ({
    owner: caller.owner,
    keys: await keys.list(reachOf(caller)),
  }),

  createKey: async ({ keys }, { caller, body }) => {
    const owner = plain('owner', body.owner ?? caller.owner);
    if (owner !== caller.owner && reachOf(caller) !== undefined) {
      const sentence = `Only "${firstOwner}" may make keys for other owners.`;
      throw new ApiError('FORBIDDEN', sentence);
    }
    const { kind, scopes, shared, expires_in_days: days } = body;
    // A sign-in token leads to the page that asks.
    const terms = kind !== 'sign-in' && { termsVersion: acceptedTerms(body.accept_terms) };
    return await keys.create({
      kind,
      owner,
      name: plain('name', body.name),
      shared,
      ...terms,
      ...(scopes && { scopes }),
      ...(days !== undefined && { expiresAt: new Date(Date.now() + days * dayMs) }),
    });
  },

  revokeKey: async ({ keys }, { caller, params }) => await keys.revoke(params.id, reachOf(caller)),

  listWorkers: async ({ workers }, { caller }) => ({
    workers: await workers.list(caller.owner),
  }),
} as const satisfies Handlers;

/** The owner whose keys an admin may manage; undefined (all) for the first owner. */
function reachOf(caller: Caller): string | undefined {
  return caller.owner === firstOwner ? undefined : caller.owner;
}

/** The version of the terms that is accepted. @throws ApiError `TERMS_NOT_ACCEPTED` unless it is the present one */
function acceptedTerms(accepted: string | undefined): string {
  if (accepted === termsVersion) return accepted;
  throw new ApiError(
    'TERMS_NOT_ACCEPTED',
    accepted && `The terms of use have the version ${termsVersion}, and not ${accepted}.`,
  );
}

/** A name on one line. PostgreSQL cannot store NUL. */
function plain(field: string, text: string): string {
  const line = text.replace(/\p{Cc}+/gu, ' ').trim();
  if (line !== '') return line;
  throw invalidField(field, `${field} must be a text that is not empty.`);
}
