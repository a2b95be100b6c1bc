import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import type { Relay } from '../open';
import { answer } from './answer';
import { headersOf } from './request';

/** Answers one request of the API without Next, through the function that Next's route handlers call. */
export async function answerDirectly(
  relay: Relay,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const closed = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) closed.abort();
  });
  const answered = await answer(relay, toRequest(request, closed.signal));
  response.statusCode = answered.status;
  for (const [name, value] of answered.headers) {
    if (name === 'set-cookie') response.appendHeader(name, value);
    else response.setHeader(name, value);
  }
  if (answered.body === null) {
    response.end();
    return;
  }
  const body = answered.body as NodeReadableStream<Uint8Array>;
  if (answered.headers.get('content-type')?.startsWith('application/json')) {
    const reader = body.getReader();
    const first = await reader.read();
    const second = first.done ? first : await reader.read();
    if (second.done) {
      // Nearly every answer is one chunk, which is sent faster than a stream.
      response.end(first.value);
      return;
    }
    response.write(first.value);
    response.write(second.value);
    reader.releaseLock();
  }
  // A client may disconnect.
  await pipeline(Readable.fromWeb(body), response).catch(() => undefined);
}

/** The origin has no meaning: addresses in answers start with `KINORA_PUBLIC_URL`. */
function toRequest(request: IncomingMessage, signal: AbortSignal): Request {
  const { method = 'GET', url = '/' } = request;
  const headers = headersOf(request);
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const body = hasBody ? (Readable.toWeb(request) as BodyInit & NodeReadableStream) : null;
  const init: RequestInit & { duplex: 'half' } = { method, headers, body, signal, duplex: 'half' };
  return new Request(new URL(url, 'http://localhost'), init);
}
