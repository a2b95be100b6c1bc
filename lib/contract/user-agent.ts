import { version } from '../../package.json';

/**
 * How the programs of Kinora name themselves to other hosts, many of which refuse what has no version and no contact.
 *
 * @param contact an address of whoever runs them; by default that of a server on this machine
 */
export function userAgent(contact = 'http://127.0.0.1:3000'): string {
  return `Kinora/${version} (+${contact})`;
}
