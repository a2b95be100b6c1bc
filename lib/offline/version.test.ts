import { expect, test } from 'vitest';
import { cachedPath, isServerPath, requestOf } from './version';

const origin = 'http://127.0.0.1:3000';
const pathOf = (path: string, init?: RequestInit) =>
  cachedPath(new Request(new URL(path, origin), init), origin);

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
  expect(cachedPath(new Request('http://127.0.0.1:1/models'), origin)).toBe(null);
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
  // Node has no address that paths are relative to.
  const file = { path: `${origin}/keys?rsc`, hash: '', bytes: 1, when: 'installed' } as const;
  const request = requestOf(file);
  expect([request.url, request.headers.get('RSC')]).toEqual([`${origin}/keys?_rsc`, '1']);
});
