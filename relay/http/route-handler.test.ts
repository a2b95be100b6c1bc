import { afterEach, expect, test } from 'vitest';
import { DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT } from '../../app/api/[[...path]]/route';
import { apiErrorSchema } from '../../lib/contract/v3';
import type { Relay } from '../open';
import { type Answer, handle, setRelay } from './route-handler';

const request = () => new Request('http://localhost/api/v3/balance');
const relayNamed = (name: string) => ({ name }) as unknown as Relay;
const answer: Answer = async (relay) => Response.json(relay);

let remove = () => {};
afterEach(() => remove());

test('without a relay, as under `next start`, every request is answered 503', async () => {
  const response = await handle(request());
  expect(response.status).toBe(503);
  expect(response.headers.get('retry-after')).toBe('5');
  const body = apiErrorSchema.parse(await response.json());
  expect(body).toMatchObject({ code: 503, message: expect.stringContaining('npm start') });
  expect(response.headers.get('x-request-id')).toBe(body.request_id);
});

test('every method of the route handler goes to the relay that is running', async () => {
  remove = setRelay(relayNamed('one'), answer);
  for (const method of [GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS]) {
    expect(await (await method(request())).json()).toEqual({ name: 'one' });
  }
});

test('a relay that stops late does not take away the one that came after it', async () => {
  const first = setRelay(relayNamed('one'), answer);
  remove = setRelay(relayNamed('two'), answer);
  first();
  expect(await (await handle(request())).json()).toEqual({ name: 'two' });
});

test('another copy of the module, as Next bundles one, finds the same relay', async () => {
  remove = setRelay(relayNamed('one'), answer);
  const copy = (await import(
    `./route-handler?copy=${Date.now()}`
  )) as typeof import('./route-handler');
  expect(copy.handle).not.toBe(handle);
  expect(await (await copy.handle(request())).json()).toEqual({ name: 'one' });
});
