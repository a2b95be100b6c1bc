import { describe, expect, test } from 'vitest';
import { parseAddress, parseHub, parseHubAddress } from './address';

const hub = 'https://huggingface.co';
const file = (path: string, revision = 'main') => ({
  kind: 'file',
  repository: 'owner/na.me-1',
  revision,
  path,
});

describe('an address of the hub', () => {
  test.each([
    ['owner/na.me-1', { kind: 'repository', repository: 'owner/na.me-1', revision: 'main' }],
    [' owner/na.me-1/ ', { kind: 'repository', repository: 'owner/na.me-1', revision: 'main' }],
    ['owner/na.me-1/a/b.gguf', file('a/b.gguf')],
    ['huggingface.co/owner/na.me-1/b.gguf', file('b.gguf')],
    ['hf.co/owner/na.me-1/b.gguf', file('b.gguf')],
    ['hf://owner/na.me-1/b.gguf', file('b.gguf')],
    ['hf://owner/na.me-1/resolve/refs%2Fpr%2F1/b.gguf', file('b.gguf', 'refs/pr/1')],
    ['owner/na.me-1/resolve/refs%2Fpr%2F1/a%20b.gguf?x', file('a b.gguf', 'refs/pr/1')],
    ['https://hf.co/owner/na.me-1/blob/dev/a/b.gguf', file('a/b.gguf', 'dev')],
    [
      'https://huggingface.co/owner/na.me-1/resolve/main/a%20b.gguf?download=true',
      file('a b.gguf'),
    ],
    [
      'https://huggingface.co/owner/na.me-1/tree/v2',
      { kind: 'repository', repository: 'owner/na.me-1', revision: 'v2' },
    ],
    [
      'https://huggingface.co/owner/na.me-1/tree/refs%2Fpr%2F1',
      { kind: 'repository', repository: 'owner/na.me-1', revision: 'refs/pr/1' },
    ],
    [
      'https://huggingface.co/owner/na.me-1/resolve/refs%2Fpr%2F1/a/b.gguf',
      file('a/b.gguf', 'refs/pr/1'),
    ],
    ['huggingface.co/owner/na.me-1/blob/refs%2Fpr%2F1/b.gguf', file('b.gguf', 'refs/pr/1')],
    ['https://hf.co/owner/na.me-1/resolve/refs/pr/1/a/b.gguf', file('a/b.gguf', 'refs/pr/1')],
    ['https://hf.co/owner/na.me-1/resolve/main/a%2Fb%3F.gguf', file('a/b?.gguf')],
  ])('%s', (text, address) => {
    expect(parseAddress(text, hub)).toEqual(address);
  });

  test('belongs to the hub in use, mirrors below a path included', () => {
    const mirror = 'https://mirror.example/models/hf';
    const link = `${mirror}/owner/na.me-1/resolve/main/b.gguf`;
    expect(parseAddress(link, mirror)).toEqual(file('b.gguf'));
    expect(parseAddress(link, hub)).toEqual({ kind: 'link', url: link });
  });

  test('takes a revision from outside where it names none', () => {
    expect(parseAddress('owner/na.me-1/b.gguf', hub, 'dev')).toEqual(file('b.gguf', 'dev'));
  });
});

test('where it has to be on the hub, a link elsewhere is refused, named without its query', () => {
  const link = () => parseHubAddress('https://example.org/a.gguf?key=secret', hub);
  expect(link).toThrow(/example\.org\/a\.gguf" .*not on the hub(?!.*secret)/);
  expect(parseHubAddress('owner/na.me-1/b.gguf', hub)).toEqual(file('b.gguf'));
});

test('a file elsewhere stays a link', () => {
  const url = 'https://example.org/files/lora.safetensors?key=1';
  expect(parseAddress(url, hub)).toEqual({ kind: 'link', url });
  const local = 'http://127.0.0.1:8080/lora.safetensors';
  expect(parseAddress(local, hub)).toEqual({ kind: 'link', url: local });
});

test.each([
  '',
  'owner',
  'owner/',
  '/name',
  'own er/name',
  'owner/name/../secret',
  '../x.safetensors',
  '../a/b.safetensors',
  'owner/..',
  'https://huggingface.co/owner%2Fname/x.gguf',
  'https://huggingface.co/owner/name/resolve/main/..%2F..%2Fx.gguf',
  'https://huggingface.co/owner/name/tree/refs%2Fpr%2F1/folder',
  'owner/./b.safetensors',
  'datasets/owner/name',
  'https://huggingface.co/owner/name/resolve/main',
  'https://huggingface.co/owner/name/tree/main/folder',
  'https://huggingface.co/owner/name/resolve/main/%E0%A4%A',
  'owner/name/%E0%A4%A',
  'http://example.org/file.safetensors',
  'ftp://example.org/file.safetensors',
  'file:///etc/passwd',
  'javascript:alert(1)',
  'https://example.org/',
  'https://user:word@example.org/file',
  'https://',
])('"%s" is refused', (text) => {
  expect(() => parseAddress(text, hub)).toThrow(
    expect.objectContaining({ code: 'ADDRESS_INVALID' }),
  );
});

test('a hub is kept without its last slash', () => {
  expect(parseHub(' https://mirror.example/hf/ ')).toBe('https://mirror.example/hf');
  expect(parseHub('http://127.0.0.1:9000')).toBe('http://127.0.0.1:9000');
});

test.each(['mirror.example', 'http://mirror.example', 'https://x.example/?a', ''])(
  '"%s" is no hub',
  (text) => {
    expect(() => parseHub(text)).toThrow(expect.objectContaining({ code: 'ADDRESS_INVALID' }));
  },
);
