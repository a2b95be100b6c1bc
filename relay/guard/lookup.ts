import type { LookupAddress } from 'node:dns';
import { lookup as systemLookup } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import { GuardError } from '../relay';
import { isPublicAddress } from './addresses';

/** Addresses of a name. */
export type Lookup = (hostname: string) => Promise<readonly LookupAddress[]>;

/** The lookup of the operating system. */
export const lookupBySystem: Lookup = (hostname) => systemLookup(hostname, { all: true });

/**
 * The lookup of a socket that is about to connect: it hands on only public addresses, and the socket
 * connects to what it was handed. No second lookup comes between check and connection, so a name that
 * changes its answer (DNS rebinding) wins nothing.
 */
export function publicLookup(lookup: Lookup, allowPrivate: boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname).then(
      (answers) => {
        const allowed = answers.filter(({ address }) => allowPrivate || isPublicAddress(address));
        const [first] = allowed;
        if (first === undefined) {
          const name = hostname.slice(0, 100);
          const error =
            answers.length === 0
              ? new GuardError('unreachable', `${name} has no address.`)
              : new GuardError('refused', `${name} is not a host of the public internet.`);
          callback(error, '', 0);
        } else if (options.all === true) callback(null, [...allowed]);
        else callback(null, first.address, first.family);
      },
      (cause: NodeJS.ErrnoException) => callback(cause, '', 0),
    );
  };
}
