import { describe, expect, test } from 'vitest';
import { checkUrl, GuardError, isPublicAddress } from './addresses';

const privateHosts = [
  // IPv4 in every way the URL parser reads it
  '127.0.0.1',
  '127.1',
  '127.0.1',
  '2130706433',
  '0x7f000001',
  '0x7f.1',
  '0177.0.0.1',
  '017700000001',
  '127.0.0.1.',
  '１２７.0.0.1',
  '127。0。0。1',
  '%31%32%37.0.0.1',
  '127.255.255.254',
  '0',
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '100.64.0.1',
  '100.127.255.255',
  '169.254.169.254',
  '2852039166',
  '0xa9fea9fe',
  '192.0.0.1',
  '192.0.2.1',
  '192.88.99.1',
  '198.18.0.1',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  // IPv6, and IPv4 inside it
  '[::]',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::ffff:169.254.169.254]',
  '[::ffff:0:127.0.0.1]',
  '[::127.0.0.1]',
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b::8.8.8.8]',
  '[64:ff9b:1::1]',
  '[2002:7f00:1::]',
  '[2002:a9fe:a9fe::]',
  '[2001:0:4136:e378:8000:63bf:3fff:fdd2]',
  '[2001:db8::1]',
  '[2001:10::1]',
  '[3fff::1]',
  '[100::1]',
  '[5f00::1]',
  '[fc00::1]',
  '[fd00:ec2::254]',
  '[fe80::1]',
  '[fec0::1]',
  '[ff02::1]',
  // Names of this machine or this network
  'localhost',
  'LOCALHOST',
  'localhost.',
  'localhost..',
  'a.localhost',
  'a.b.localhost.',
  'localhost.localdomain',
  'ip6-localhost',
  'intranet',
  'metadata',
  'metadata.google.internal',
  'printer.local',
  'router.home.arpa',
];

describe('addresses', () => {
  test.each(privateHosts)('%s is refused, with and without a port', (host) => {
    for (const url of [`https://${host}/x`, `https://${host}:8443/x`]) {
      expect(() => checkUrl(url, false)).toThrow(GuardError);
    }
  });

  test.each([
    '8.8.8.8',
    '1.1.1.1',
    '172.32.0.1',
    '100.128.0.1',
    '[2606:4700:4700::1111]',
    '[::ffff:8.8.8.8]',
    'hooks.example.com',
    'hooks.example.com.',
    'localhost.example.com',
    'mylocalhost.com',
    'xn--bcher-kva.example',
  ])('%s is let through, on any port', (host) => {
    expect(checkUrl(`https://${host}/x?y=1`, false).protocol).toBe('https:');
    expect(checkUrl(`https://${host}:8443/`, false).port).toBe('8443');
  });

  test.each([
    '',
    'hooks.example.com',
    '//hooks.example.com',
    'https://',
    'https://1.2.3.4.5/',
    'https://[::1',
    'https://a b.example/',
    'https://[fe80::1%25eth0]/',
    'http://hooks.example.com/',
    'ftp://hooks.example.com/',
    'file:///etc/passwd',
    'data:text/plain,x',
    'javascript:alert(1)',
    'gopher://hooks.example.com/',
    'https://user@hooks.example.com/',
    'https://user:pass@hooks.example.com/',
    'https://hooks.example.com:pass@127.0.0.1/',
    `https://hooks.example.com/${'x'.repeat(5000)}`,
  ])('%s is no address', (url) => {
    expect(() => checkUrl(url, false)).toThrow(GuardError);
  });

  test('the development switch allows http and private hosts, and nothing else', () => {
    expect(checkUrl('http://localhost:3000/a#b', true).href).toBe('http://localhost:3000/a');
    expect(checkUrl('https://10.0.0.1/', true).host).toBe('10.0.0.1');
    expect(() => checkUrl('ftp://localhost/', true)).toThrow(GuardError);
    expect(() => checkUrl('http://user:pass@localhost/', true)).toThrow(GuardError);
  });

  test('a message names the host and not what follows it', () => {
    expect(() => checkUrl('https://10.0.0.1/path?token=secret', false)).toThrow(
      /^10\.0\.0\.1 is not a host of the public internet\.$/,
    );
  });

  test.each(['', 'localhost', '127.0.0.1', '::7f00:1', 'fe80::1%eth0', '4000::1'])(
    'what a lookup may answer: "%s" is not public',
    (address) => {
      expect(isPublicAddress(address)).toBe(false);
    },
  );
});
