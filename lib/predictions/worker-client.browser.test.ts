import { afterEach, describe, expect, test } from 'vitest';
import { failureOf } from '../contract/testing/failure';
import { createWorkerClient } from './worker-client';

interface EchoApi {
  echo(): Promise<string>;
}

const clients: { close(): void }[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

/** The failure of a call to a worker of a script. */
function failureAt(address: string) {
  const client = createWorkerClient<EchoApi>('echo', () => new Worker(address));
  clients.push(client);
  const { api, crashed } = client.open();
  return failureOf(Promise.race([api.echo(), crashed]));
}

describe('a worker whose script the browser refuses', () => {
  test.each([
    ['of another origin: the constructor throws', 'http://127.0.0.1:9/echo.js'],
    ['that is not there: the server answers 404', '/there-is-no-such-script.html?worker.js'],
  ])('%s', async (_, address) => {
    expect(await failureAt(address)).toMatchObject({ code: 'SCRIPT_REFUSED' });
  });

  test('by the policy of its document', async () => {
    const frame = document.createElement('iframe');
    frame.srcdoc = `<meta http-equiv="content-security-policy" content="worker-src 'none'">`;
    document.body.append(frame);
    await new Promise((resolve) => frame.addEventListener('load', resolve, { once: true }));
    const { Worker: Refused } = frame.contentWindow as unknown as typeof globalThis;
    const client = createWorkerClient<EchoApi>('echo', () => new Refused('/echo.js'));
    const { api, crashed } = client.open();
    expect(await failureOf(Promise.race([api.echo(), crashed]))).toMatchObject({
      code: 'SCRIPT_REFUSED',
    });
    frame.remove();
  });
});

test('a worker that fails in its script is an INTERNAL failure with its message', async () => {
  const address = URL.createObjectURL(new Blob(['throw new Error("no echo")']));
  const failure = await failureAt(address);
  expect(failure).toMatchObject({ code: 'INTERNAL', message: expect.stringContaining('no echo') });
  URL.revokeObjectURL(address);
});
