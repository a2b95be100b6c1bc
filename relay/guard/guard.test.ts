import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer, text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { GuardError } from './addresses';
import { createGuard, type Guard, type GuardOptions } from './guard';
import { testCertificate } from './testing/certificate';
import { serve, serveBytes, type TestServer } from './testing/server';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const onLoopback = async () => [{ address: '127.0.0.1', family: 4 }];
/** A guard under the development switch whose every name is on loopback. */
function guardOf(options: Partial<GuardOptions> = {}): Guard {
  const guard = createGuard({ allowPrivate: true, lookup: onLoopback, ...options });
  closers.push(() => guard.close());
  return guard;
}
async function server(
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
  tls = false,
): Promise<TestServer> {
  const made = await serve(onRequest, tls);
  closers.push(made.close);
  return made;
}
async function bytes(onConnection: Parameters<typeof serveBytes>[0]): Promise<TestServer> {
  const made = await serveBytes(onConnection);
  closers.push(made.close);
  return made;
}
const refusal = async (work: Promise<unknown>): Promise<GuardError> => {
  const thrown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (thrown instanceof GuardError) return thrown;
  throw new Error('There was no GuardError.', { cause: thrown });
};
const read = async (guard: Guard, url: string, options?: Parameters<Guard['fetch']>[1]) =>
  text((await guard.fetch(url, options)).body);
/** An answer that has begun. On a machine that pauses its head may come too late: it is asked for again. */
const begun = async (ask: () => ReturnType<Guard['fetch']>): ReturnType<Guard['fetch']> => {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (thrown) {
      const isLate = thrown instanceof GuardError && thrown.reason === 'timeout';
      if (!isLate || tries === 20) throw thrown;
    }
  }
};

describe('a call', () => {
  test('sends method, headers and body, and returns the answer', async () => {
    const { origin } = await server((request, response) => {
      void text(request).then((body) => {
        response.setHeader('x-two', ['a', 'b']);
        response.writeHead(201);
        response.write(JSON.stringify([request.method, request.url, request.headers, body]));
        response.end();
      });
    });
    const answer = await guardOf().fetch(`${origin}/a?b=c#d`, {
      method: 'POST',
      headers: { 'X-One': '1' },
      body: 'hello',
    });
    expect(answer.status).toBe(201);
    expect(answer.headers['x-two']).toBe('a, b');
    const said = await text(answer.body);
    expect(answer.bytes).toBeNull();
    expect(JSON.parse(said)).toMatchObject([
      'POST',
      '/a?b=c',
      { 'x-one': '1', 'accept-encoding': 'identity', 'content-length': '5' },
      'hello',
    ]);
  });

  test('returns a compressed answer as it came', async () => {
    const packed = gzipSync(Buffer.alloc(1_000_000));
    const { origin } = await server((_, response) => {
      response.setHeader('content-encoding', 'gzip');
      response.end(packed);
    });
    const answer = await guardOf().fetch(origin, { maxBytes: 10_000 });
    expect((await buffer(answer.body)).equals(packed)).toBe(true);
  });
});

describe('names and addresses', () => {
  test('a name whose address changes is looked up once per connection and reaches no private host', async () => {
    const inside = await bytes(() => undefined);
    let lookups = 0;
    const guard = guardOf({
      allowPrivate: false,
      // First public, then loopback: a check before the connection would be deceived.
      lookup: async () => {
        lookups += 1;
        return [{ address: lookups % 2 === 1 ? '93.184.216.34' : '127.0.0.1', family: 4 }];
      },
      // A packet from loopback to the internet is refused by the kernel: none leaves the machine.
      localAddress: '127.0.0.1',
    });
    const url = `https://rebinding.example.com:${inside.port}/`;
    for (let round = 1; round <= 4; round += 1) {
      const error = await refusal(guard.fetch(url));
      expect(lookups).toBe(round);
      if (round % 2 === 0) {
        expect(error.reason).toBe('refused');
        expect(error.message).toBe('rebinding.example.com is not a host of the public internet.');
      } else {
        expect(error.reason).toBe('unreachable');
        expect(String(error.cause)).toContain('93.184.216.34');
      }
    }
    expect(inside.connections()).toBe(0);
  });

  test('of several addresses only the public ones are tried', async () => {
    const inside = await bytes(() => undefined);
    const guard = guardOf({
      allowPrivate: false,
      lookup: async () => [
        { address: '::1', family: 6 },
        { address: '127.0.0.1', family: 4 },
        { address: '93.184.216.34', family: 4 },
        { address: '::ffff:127.0.0.1', family: 6 },
      ],
      localAddress: '127.0.0.1',
    });
    const error = await refusal(guard.fetch(`https://mixed.example.com:${inside.port}/`));
    expect(error.reason).toBe('unreachable');
    expect(inside.connections()).toBe(0);
  });

  test.each(['127.0.0.1', '[::1]', '2130706433', '[::ffff:127.0.0.1]', 'localhost', 'a.localhost'])(
    '%s is refused without a connection',
    async (host) => {
      const inside = await bytes(() => undefined);
      const guard = guardOf({ allowPrivate: false });
      const error = await refusal(guard.fetch(`https://${host}:${inside.port}/?secret=1`));
      expect(error.reason).toBe('refused');
      expect(error.message).not.toContain('secret');
      expect(inside.connections()).toBe(0);
    },
  );

  test('a name without an address and a failed lookup are reported in a sentence', async () => {
    const empty = guardOf({ lookup: async () => [] });
    expect((await refusal(empty.fetch('http://a.example/?k=1'))).message).toBe(
      'a.example has no address.',
    );
    const failing = guardOf({
      lookup: () => Promise.reject(Object.assign(new Error('x'), { code: 'ENOTFOUND' })),
    });
    expect((await refusal(failing.fetch('http://a.example/?k=1'))).message).toBe(
      'a.example could not be found.',
    );
  });
});

describe('TLS', () => {
  test('a certificate without a trusted issuer, or for another name, is refused', async () => {
    let asked = 0;
    const { port } = await server((_, response) => {
      asked += 1;
      response.end('in');
    }, true);
    const sentence = 'has no valid TLS certificate.';
    expect((await refusal(guardOf().fetch(`https://a.hooks.example:${port}/`))).message).toContain(
      sentence,
    );
    const trusting = guardOf({ ca: testCertificate.cert });
    expect((await refusal(trusting.fetch(`https://hooks.example:${port}/`))).message).toContain(
      sentence,
    );
    expect(asked).toBe(0);
    expect(await read(trusting, `https://a.hooks.example:${port}/`)).toBe('in');
  });

  test('a server without TLS is refused', async () => {
    const { port } = await server((_, response) => response.end('plain'));
    expect((await refusal(guardOf().fetch(`https://a.hooks.example:${port}/`))).reason).toBe(
      'unreachable',
    );
  });

  test('a redirect to an address without TLS is refused, also under the development switch', async () => {
    const plain = await server((_, response) => response.end('plain'));
    const secure = await server((_, response) => {
      response.writeHead(302, { location: `${plain.origin}/` }).end();
    }, true);
    const guard = guardOf({ ca: testCertificate.cert });
    for (const request of [{}, { http: true }]) {
      const error = await refusal(guard.fetch(secure.origin, request));
      expect(error).toMatchObject({ reason: 'refused' });
      expect(error.message).toContain('without TLS');
    }
    expect(plain.connections()).toBe(0);
  });
});

describe('a call that may use http', () => {
  test('reaches public hosts only', async () => {
    const inside = await bytes(() => undefined);
    const guard = guardOf({ allowPrivate: false });
    const url = `http://rebinding.example.com:${inside.port}/`;
    expect(() => guard.check(url)).toThrow('does not start with https://');
    expect(guard.check(url, { http: true }).href).toBe(url);
    expect((await refusal(guard.fetch(url))).message).toContain('https://');
    // Its name is on loopback.
    for (const host of [new URL(url).host, `127.0.0.1:${inside.port}`, '[::ffff:7f00:1]', '10.1']) {
      const error = await refusal(guard.fetch(`http://${host}/`, { http: true }));
      expect(error).toMatchObject({ reason: 'refused' });
      expect(error.message).toContain('is not a host of the public internet.');
    }
    expect(inside.connections()).toBe(0);
    const to = (scheme: string) => guard.check(`${scheme}://a.example.com/`, { http: true });
    expect(() => to('ftp')).toThrow(GuardError);
  });
});

describe('redirects', () => {
  test('are followed without the credentials', async () => {
    const last = await server((request, response) => {
      response.end(JSON.stringify(request.headers));
    });
    const first = await server((_, response) => {
      response.writeHead(307, { location: `http://other.example:${last.port}/b` }).end('moved');
    });
    const headers = { Authorization: 'Bearer k', Cookie: 'c=1', 'X-Kept': '1' };
    const said = JSON.parse(await read(guardOf(), `${first.origin}/a`, { headers }));
    expect(said).toMatchObject({ host: `other.example:${last.port}`, 'x-kept': '1' });
    expect(said).not.toHaveProperty('authorization');
    expect(said).not.toHaveProperty('cookie');
  });

  test('relative ones too; a POST, and redirects: 0, get the 3xx itself', async () => {
    const { origin } = await server((request, response) => {
      if (request.url === '/b') response.end('there');
      else response.writeHead(302, { location: '/b' }).end();
    });
    const guard = guardOf();
    expect(await read(guard, `${origin}/a`)).toBe('there');
    expect((await guard.fetch(`${origin}/a`, { redirects: 0 })).status).toBe(302);
    expect((await guard.fetch(`${origin}/a`, { method: 'POST', body: '' })).status).toBe(302);
  });

  test.each([
    'file:///etc/passwd',
    'gopher://127.0.0.1/',
    'http://user:pass@127.0.0.1/',
    'https://[::1',
  ])('to %s are refused', async (location) => {
    const { origin } = await server((_, response) => response.writeHead(302, { location }).end());
    expect((await refusal(guardOf().fetch(origin))).reason).toBe('refused');
  });

  test('that lead in a circle, or too far, end', async () => {
    const { origin } = await server((request, response) => {
      const hop = Number(request.url?.slice(1));
      response.writeHead(302, { location: hop < 100 ? `/${hop + 1}` : '/100' }).end();
    });
    const guard = guardOf();
    expect((await refusal(guard.fetch(`${origin}/100`))).reason).toBe('redirects');
    const error = await refusal(guard.fetch(`${origin}/0`, { redirects: 2 }));
    expect(error.message).toBe('127.0.0.1 redirects more than 2 times.');
  });
});

describe('size', () => {
  test('an announced length beyond the cap ends the call at its head', async () => {
    const { origin } = await server((_, response) => {
      response.writeHead(200, { 'content-length': 1_000_000_000 }).write('x');
    });
    const error = await refusal(guardOf().fetch(`${origin}/?k=1`, { maxBytes: 1000 }));
    expect(error.reason).toBe('too-large');
    expect(error.message).toBe('The answer of 127.0.0.1 is larger than 1,000 bytes.');
  });

  test('a body without a length is cut while it streams, and the sender is cut off', async () => {
    let closed: Promise<unknown> = Promise.resolve();
    const { origin } = await server((_, response) => {
      closed = once(response, 'close');
      const more = (): void => {
        while (response.writable && response.write(Buffer.alloc(16_384)));
        response.once('drain', more);
      };
      more();
    });
    const { body } = await guardOf().fetch(origin, { maxBytes: 100_000 });
    let received = 0;
    const error = await refusal(
      (async () => {
        for await (const chunk of body) received += chunk.length;
      })(),
    );
    expect(error.reason).toBe('too-large');
    expect(received).toBeLessThanOrEqual(100_000);
    await closed;
  });

  test('exactly the cap is allowed', async () => {
    const { origin } = await server((_, response) => response.end('12345'));
    const answer = await guardOf().fetch(origin, { maxBytes: 5 });
    expect(answer.bytes).toBe(5);
    expect(await text(answer.body)).toBe('12345');
  });

  test.each([
    ['less than its length', 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf'],
    ['chunks without an end', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
  ])('a body that breaks off (%s) is an error', async (_, said) => {
    const { origin } = await bytes((socket) => {
      socket.once('data', () => socket.end(said));
    });
    const { body } = await guardOf().fetch(origin);
    expect((await refusal(text(body))).reason).toBe('unreachable');
  });

  test('more than the announced length does not come through', async () => {
    const { origin } = await bytes((socket) => {
      socket.once('data', () => {
        socket.end('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nthissurplus');
      });
    });
    const said = await read(guardOf(), origin).catch((error: unknown) => error);
    if (said instanceof Error) expect(said).toBeInstanceOf(GuardError);
    else expect(said).toBe('this');
  });

  test.each(['SSH-2.0-OpenSSH\r\n', `HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(20_000)}\r\n`])(
    'what is no answer in HTTP is an error',
    async (said) => {
      const { origin } = await bytes((socket) => socket.write(said));
      expect((await refusal(guardOf().fetch(origin))).reason).toBe('unreachable');
    },
  );
});

describe('time', () => {
  test('a connection that is never made', async () => {
    // The name is looked up forever: of the connection's three parts the one a test can hold still.
    const guard = guardOf({ lookup: () => new Promise(() => undefined), connectMs: 30 });
    const error = await refusal(guard.fetch('http://a.example/?k=1'));
    expect(error).toMatchObject({ reason: 'timeout' });
    expect(error.message).toBe('a.example could not be reached in time.');
  });

  test('TLS that is never agreed on', async () => {
    const silent = await bytes(() => undefined);
    const error = await refusal(
      guardOf({ connectMs: 100 }).fetch(`https://a.example:${silent.port}/`),
    );
    expect(error.message).toBe('a.example could not be reached in time.');
    await vi.waitFor(() => expect(silent.connections()).toBe(1), 10_000);
  });

  test('a head that comes byte by byte', async () => {
    const { origin } = await bytes((socket) => {
      const said = `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(5000)}`;
      let at = 0;
      const timer = setInterval(() => socket.write(said.charAt(at++)), 5);
      socket.on('close', () => clearInterval(timer));
    });
    const error = await refusal(guardOf().fetch(origin, { totalMs: 150 }));
    expect(error.message).toBe('127.0.0.1 took too long to answer.');
  });

  test('a body that comes byte by byte, redirects counted in', async () => {
    const { origin } = await server((request, response) => {
      if (request.url === '/') {
        response.writeHead(302, { location: '/slow' }).end();
        return;
      }
      const timer = setInterval(() => response.write('x'), 5);
      response.on('close', () => clearInterval(timer));
    });
    const error = await refusal(read(guardOf(), origin, { totalMs: 300 }));
    expect(error.message).toBe('127.0.0.1 took too long to answer.');
  });

  test('silence within a body', async () => {
    const { origin } = await server((_, response) => response.write('x'));
    const guard = guardOf({ idleMs: 100 });
    const { body } = await begun(() => guard.fetch(origin, { totalMs: 60_000 }));
    const error = await refusal(text(body));
    expect(error.message).toBe('127.0.0.1 stopped answering.');
  });

  test('the caller’s signal stops it before, within the head, and within the body', async () => {
    const { origin } = await server((request, response) => {
      if (request.url === '/body') response.write('x');
    });
    const guard = guardOf();
    await expect(guard.fetch(origin, { signal: AbortSignal.abort() })).rejects.toThrow(
      'The call of 127.0.0.1 was stopped.',
    );
    const head = new AbortController();
    const waiting = guard.fetch(origin, { signal: head.signal });
    head.abort();
    expect(await refusal(waiting)).toMatchObject({ reason: 'unreachable' });
    const stop = new AbortController();
    const { body } = await guard.fetch(`${origin}/body`, { signal: stop.signal });
    stop.abort();
    expect((await refusal(text(body))).message).toContain('was stopped');
  });

  test('a body that is not read ends with its time limit', async () => {
    let closed: Promise<unknown> = Promise.resolve();
    const { origin } = await server((_, response) => {
      closed = once(response, 'close');
      response.write('x');
    });
    const guard = guardOf();
    const answer = await begun(() => guard.fetch(origin, { totalMs: 300 }));
    await closed;
    expect((await refusal(text(answer.body))).reason).toBe('timeout');
  });

  test('closing the guard ends what is under way', async () => {
    const { origin } = await server(() => undefined);
    const guard = createGuard({ allowPrivate: true });
    const waiting = refusal(guard.fetch(origin));
    await guard.close();
    expect(await waiting).toMatchObject({ reason: 'unreachable' });
  });
});
