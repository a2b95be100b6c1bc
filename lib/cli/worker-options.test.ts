import { expect, test } from 'vitest';
import { parseWorkerOptions, tokenVariable, workerHelp } from './worker-options';

const token = { [tokenVariable]: ' kw_secret ' };
const parse = (...args: string[]) => parseWorkerOptions(args, token, 'box');

test('reads what is given, and fills in the rest', () => {
  expect(parse('--server', 'https://kinora.example/')).toEqual({
    server: 'https://kinora.example',
    token: 'kw_secret',
    model: 'mini',
    device: {},
    name: 'box',
    precision: undefined,
    hub: undefined,
    yes: false,
    acceptTerms: false,
  });
  const all =
    '--server http://127.0.0.1:3000 --token kw_x --model tiny --backend wasm --kernels runtime --precision int4 -y --accept-terms';
  expect(parse(...all.split(' '), '--name', 'GPU 1')).toMatchObject({
    server: 'http://127.0.0.1:3000',
    token: 'kw_x',
    model: 'tiny',
    device: { backend: 'wasm', kernels: 'runtime' },
    precision: 'int4',
    name: 'GPU 1',
    yes: true,
    acceptTerms: true,
  });
  expect(parse('--help')).toBe('help');
  expect(workerHelp).toContain(tokenVariable);
});

test('plain http is for this machine only', () => {
  for (const host of ['localhost:3000', '127.0.0.1', '[::1]:3000', 'kinora.localhost']) {
    expect(parse('--server', `http://${host}`)).toMatchObject({ server: `http://${host}` });
  }
  for (const host of ['192.168.1.5:3000', 'localhost.example', 'kinora.example']) {
    expect(() => parse('--server', `http://${host}`)).toThrow('is not encrypted');
  }
});

test('what cannot be used is refused with the option that says it', () => {
  expect(() => parse()).toThrow('--server is missing.');
  const none = () => parseWorkerOptions(['--server', 'https://a.example'], {}, 'box');
  expect(none).toThrow(tokenVariable);
  for (const server of ['nonsense', 'ftp://a.example', 'https://u:p@a.example', 'https://a/b']) {
    expect(() => parse('--server', server)).toThrow('--server');
  }
  expect(() => parse('--server', 'https://a.example', '--backend', 'x')).toThrow('--backend');
  expect(() => parse('--server', 'https://a.example', '--precision', 'x')).toThrow('--precision');
  expect(() => parse('--servr', 'https://a.example')).toThrow('--servr');
});
