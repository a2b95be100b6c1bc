import { expect, test } from 'vitest';
import { cachedPath, isServerPath, pathInside, requestOf } from './version';

const scope = 'http://127.0.0.1:3000/';
const pathOf = (path: string, init?: RequestInit) =>
  cachedPath(new Request(new URL(path, scope), init), scope);

test('a request is answered from the path without slash, query and hash', () => {
  expect(pathOf('/')).toBe('/');
  expect(pathOf('/models/?model=tiny#here')).toBe('/models');
  expect(pathOf('/_next/static/chunks/a.js?params=1')).toBe('/_next/static/chunks/a.js');
});

test('what the router fetches in the place of a page is another file than the page', () => {
  const payload = (more = {}) => pathOf('/models?_rsc=1a2b', { headers: { RSC: '1', ...more } });
  expect(payload()).toBe('/models?rsc');
  // A part of a page must not be answered with the whole.
  expect(payload({ 'Next-Router-Prefetch': '1' })).toBe(null);
  expect(payload({ 'Next-Router-Segment-Prefetch': '/_tree' })).toBe(null);
  expect(pathOf('/models/index.txt?_rsc=1', { headers: { RSC: '1' } })).toBe('/models/index.txt');
});

test('other hosts and other methods are never answered from the cache', () => {
  expect(cachedPath(new Request('http://127.0.0.1:1/models'), scope)).toBe(null);
  expect(pathOf('/models', { method: 'HEAD' })).toBe(null);
});

test.each([
  '/api/v3/predictions',
  '/api',
  '/files/in/a.png',
  '/s/1f/video.mp4',
  '/oembed',
  '/metrics',
])('%s belongs to the server', (path) => expect(isServerPath(path)).toBe(true));

test.each(['/', '/docs/api', '/share', '/models/tiny.json', '/apidocs'])(
  '%s belongs to the app',
  (path) => expect(isServerPath(path)).toBe(false),
);

test('a payload is fetched as Next answers it without a redirect', () => {
  const file = { path: '/keys?rsc', hash: '', bytes: 1, when: 'installed' } as const;
  const request = requestOf(file, scope);
  expect([request.url, request.headers.get('RSC')]).toEqual([`${scope}keys?_rsc`, '1']);
});

test('past caches a file is asked for by an address that was never used', () => {
  const file = { path: '/keys?rsc', hash: '', bytes: 1, when: 'installed' } as const;
  const urls = [1, 2].map(() => new URL(requestOf(file, scope, true).url));
  expect(urls.map(({ searchParams }) => searchParams.has('_rsc'))).toEqual([true, true]);
  expect(new Set(urls.map(String)).size).toBe(2);
});

test('below a folder of the host, paths are those of the app', () => {
  const below = 'http://127.0.0.1:3000/kinora/';
  expect(pathInside(`${below}models?a`, below)).toBe('/models');
  expect(pathInside(below, below)).toBe('/');
  expect(pathInside('http://127.0.0.1:3000/models', below)).toBe(null);
  expect(cachedPath(new Request(`${below}models/`), below)).toBe('/models');
  const file = { path: '/models/', hash: '', bytes: 1, when: 'installed' } as const;
  expect(requestOf(file, below).url).toBe(`${below}models/`);
  expect(requestOf({ ...file, path: '/' }, below).url).toBe(below);
});
