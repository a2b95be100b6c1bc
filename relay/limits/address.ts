import ipaddr from 'ipaddr.js';

/**
 * What an address is counted under: an IPv4 address itself, however it is written; of an IPv6 address
 * its /64, which is what one subscriber has.
 */
export function addressGroup(address: string): string {
  if (!ipaddr.isValid(address)) return address.slice(0, 64);
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  const network = parsed.toByteArray().slice(0, 8);
  return network.map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
