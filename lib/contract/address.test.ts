import { expect, test } from 'vitest';
import { bareAddress, isLoopback } from './address';

test.each([
  ['https://a.example/x.safetensors?token=s', 'https://a.example/x.safetensors'],
  [' https://a.example/x#s\n', 'https://a.example/x'],
  ['https://user:s@a.example/x@2.png?s', 'https://a.example/x@2.png'],
  ['https:\\\\user:s@a.example/x', 'https:\\\\a.example/x'],
  ['hf:owner/name/file.safetensors?token=s', 'hf:owner/name/file.safetensors'],
  ['owner/name/file.safetensors?download=true', 'owner/name/file.safetensors'],
  // The names of files may have these characters.
  ['style #1?.safetensors', 'style #1?.safetensors'],
  ['', ''],
])('of %s is %s', (text, bare) => {
  expect(bareAddress(text)).toBe(bare);
});

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
