import { describe, expect, test } from 'vitest';
import { endpoints, type OperationId } from '../../lib/contract/v3';
import { handlers } from './handlers';
import { findRoute } from './router';

const id = '0123456789abcdef0123456789abcdef';

describe('routing', () => {
  test.each([
    ['POST', '/api/v3/kinora/wan-2.2/i2v-720p-lora', 'submit'],
    ['POST', '/api/v3/wavespeed-ai/wan-2.1/i2v-720p-lora-ultra-fast', 'submit'],
    ['GET', `/api/v3/predictions/${id}/result`, 'result'],
    ['HEAD', `/api/v3/predictions/${id}`, 'get'],
    ['POST', `/api/v3/predictions/${id}/cancel`, 'cancel'],
    ['GET', `/api/v2/predictions/${id}/result`, 'legacyResult'],
    // As many segments as `{provider}/{family}/{variant}`, and as `predictions/{id}`
    ['POST', '/api/v3/predictions/delete', 'remove'],
    ['POST', '/api/v3/media/upload/binary', 'uploadBinary'],
    ['GET', '/api/v3/webhook/deliveries', 'deliveries'],
    ['DELETE', '/api/admin/keys/abcd1234', 'revokeKey'],
    ['POST', `/api/worker/jobs/${id}/heartbeat`, 'heartbeat'],
  ])('%s %s is %s', (method, path, operation) => {
    expect(findRoute(method, path)).toMatchObject({ kind: 'found', route: { name: operation } });
  });

  test.each([
    '/api/v3',
    '/api/v3/kinora/wan-2.2/t2v-720p',
    '/api/v3/predictions/not-an-id/result',
    `/api/v3/predictions/${id.toUpperCase()}/result`,
    `/api/v3/predictions/${id}/result/`,
    '/api/v3/predictions/%E0%A4%A/result',
    '/api/v3/%00/%00/i2v',
    '//api/v3/models',
  ])('%s is nothing', (path) => {
    expect(findRoute('GET', path)).toEqual({ kind: 'nothing' });
  });

  test('another method gets the methods of the path', () => {
    expect(findRoute('PATCH', `/api/v3/predictions/${id}/result`)).toMatchObject({
      kind: 'method',
      allow: ['GET', 'HEAD', 'OPTIONS'],
      route: { name: 'result' },
    });
    expect(findRoute('GET', '/api/admin/session')).toMatchObject({
      kind: 'method',
      allow: ['POST', 'DELETE', 'OPTIONS'],
      route: { name: 'signIn' },
    });
  });

  test('parameters are decoded', () => {
    expect(findRoute('POST', '/api/v3/a%2Fb/c%20d/i2v-720p-lora')).toMatchObject({
      params: { provider: 'a/b', family: 'c d', variant: 'i2v-720p-lora' },
    });
  });
});

test('every operation that goes through Next has a handler', () => {
  const without = (Object.keys(endpoints) as OperationId[]).filter((name) => !handlers[name]);
  expect(without).toEqual(['uploadBinary', 'uploadBinaryLegacy']);
});
