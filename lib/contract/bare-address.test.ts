import { expect, test } from 'vitest';
import { bareAddress } from './bare-address';

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
