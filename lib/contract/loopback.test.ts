import { expect, test } from 'vitest';
import { isLoopback } from './loopback';

test.each([
  ['http://127.0.0.1:3000/s/1', true],
  ['http://127.1.2.3', true],
  ['http://localhost:3000', true],
  ['https://kinora.localhost', true],
  ['http://[::1]:3000', true],
  ['http://192.168.0.7:3000', false],
  ['https://localhost.example.org', false],
  ['https://kinora.example/127.0.0.1', false],
])('%s is of this machine alone: %s', (address, alone) => {
  expect(isLoopback(address)).toBe(alone);
});
