import { ReadableStream } from 'node:stream/web';
import { ApiError, describeProgress, type PredictionEvent } from '../../../lib/contract/v3';
import { isTerminal } from '../../jobs';
import { maxOpen } from '../../jobs/watches';
import type { Relay } from '../../open';
import { describeJob } from './describe';
import type { HandlerOf } from './index';
import { ownJob } from './predictions';

/** Interval of comments on an idle stream, as proxies cut idle connections; in milliseconds. */
const heartbeatMs = 15_000;
/** A stream whose first chunk was not requested within this time has no reader, in milliseconds. */
const unreadMs = 30_000;

/** `GET …/events`: the state at once, then changes, until the terminal status. */
export const events: HandlerOf<'events'> = async (relay, { params, caller, request }) => {
  const { id } = await ownJob(relay, params.id, caller);
  const endCount = relay.watches.open(caller.keyId);
  if (!endCount) {
    const sentence = `This key has ${maxOpen} answers open, and may have no more.`;
    throw new ApiError('RATE_LIMITED', sentence, {
      headers: { 'Retry-After': '5' },
      remedy: 'Close one, or request the results at `urls.get`.',
    });
  }
  const over = new AbortController();
  over.signal.addEventListener('abort', endCount);
  const end = () => over.abort();
  if (request.signal.aborted) end();
  else request.signal.addEventListener('abort', end, { once: true });
  const isAuthorized = () => hasValidKey(relay, request.headers.get('authorization'));
  const body = streamOf(follow(relay, id, over.signal, isAuthorized), over);
  return new Response(body as BodyInit & typeof body, {
    headers: {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    },
  });
};

/**
 * A body that is generated as fast as it is read.
 *
 * @param over aborted when the stream has ended for any reason, or is not read at all
 */
export function streamOf(
  chunks: AsyncIterable<string>,
  over: AbortController,
  timeoutMs = unreadMs,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  // If the client disconnects before it requests the first chunk, the generator never begins.
  const unread = setTimeout(() => over.abort(), timeoutMs).unref();
  const encoded = async function* () {
    clearTimeout(unread);
    try {
      for await (const text of chunks) yield encoder.encode(text);
    } finally {
      over.abort();
    }
  };
  return ReadableStream.from(encoded());
}

async function* follow(
  relay: Relay,
  id: string,
  over: AbortSignal,
  isAuthorized: () => Promise<boolean>,
): AsyncGenerator<string, void> {
  const sent = { status: '', step: '', preview: '' };
  /** The event's text; empty where it would repeat the last one of its type. */
  const format = (event: PredictionEvent): string => {
    const { type, ...data } = event;
    const text = JSON.stringify(data);
    if (sent[type] === text) return '';
    sent[type] = text;
    return `event: ${type}\ndata: ${text}\n\n`;
  };
  yield 'retry: 3000\n\n';
  let quietSince = performance.now();
  for await (const { job, changed } of relay.watches.follow(id, over)) {
    // At every read, every few seconds at the latest: the lookup of keys has a cache.
    if (!(await isAuthorized())) return;
    let text = '';
    if (!isTerminal(job)) {
      const progress = describeProgress(job);
      if (progress) text += format({ type: 'step', ...progress, phase: progress.phase ?? '' });
      const preview = changed.has('preview') ? await relay.jobs.preview(id) : null;
      if (preview !== null) text += format({ type: 'preview', ...preview });
    }
    // A new status comes before its steps; the terminal status comes last.
    // Progress has its own events: it must not repeat this one.
    const prediction = { ...(await describeJob(relay, job)), progress: null };
    text = format({ type: 'status', prediction }) + text;
    if (text === '' && performance.now() - quietSince >= heartbeatMs) text = ': heartbeat\n\n';
    if (text === '') continue;
    quietSince = performance.now();
    yield text;
  }
}

/** Whether the key is still valid. It counts as valid while the storage does not answer. */
async function hasValidKey(relay: Relay, authorization: string | null): Promise<boolean> {
  try {
    await relay.keys.authenticate(authorization, 'api');
    return true;
  } catch (thrown) {
    return !(thrown instanceof ApiError && thrown.status < 500);
  }
}
