import { ApiError, type Scope, scopes } from '../../lib/contract/v3';

/** The owner of a key, a worker token or a session. */
export interface Caller {
  readonly keyId: string;
  readonly owner: string;
  readonly scopes: readonly Scope[];
  /** An API key's jobs may go to shared workers of other owners; a shared worker takes such jobs. */
  readonly shared: boolean;
}

/** The owner that the first start makes. The control token acts for this owner. */
export const firstOwner = 'owner';

/** The caller with the control token: a command on the server's machine. */
export const controlCaller: Caller = {
  // No key has such an id.
  keyId: 'control',
  owner: firstOwner,
  scopes,
  shared: false,
};

/** @throws ApiError `FORBIDDEN` where the key has not this scope */
export function requireScope(key: { readonly scopes: readonly string[] }, scope: Scope): void {
  if (key.scopes.includes(scope)) return;
  const message = `This key does not have the scope ${scope}.`;
  throw new ApiError('FORBIDDEN', message, {
    details: [{ field: 'scope', message }],
    remedy: 'Use a key that has it: the Keys page shows the scopes of each, and makes others.',
  });
}
