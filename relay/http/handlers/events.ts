import { Signal } from '../../../lib/contract/signal';
import { ApiError, type PredictionEvent } from '../../../lib/contract/v3';
import type { Relay } from '../../open';
import type { JobRow } from '../../store/schema';
import type { HandlerOf } from '../handler';
import { type Change, changesOf, countOpen, onAbort, readEveryMs } from './changes';
import { describeWithPosition, isTerminal } from './describe';
import { ownJob } from './predictions';

/** Interval of comments on an idle stream, as proxies cut idle connections; in milliseconds. */
const heartbeatMs = 15_000;
/** A stream whose first chunk was not requested within this time has no reader, in milliseconds. */
const unreadMs = 30_000;

/**
 * `GET …/events`: the state at once, then changes, until the terminal status. Changes are flags and not
 * a queue, so a slow reader gets the latest state and never a backlog.
 */
export const events: HandlerOf<'events'> = async (relay, { params, caller, request }) => {
  const job = await ownJob(relay, params.id, caller);
  const endCount = countOpen(relay.store, caller.keyId);
  const client = new AbortController();
  const ends = [client.signal, request.signal, relay.stopping];
  const isAuthorized = () => hasValidKey(relay, request.headers.get('authorization'));
  const body = streamOf(follow(relay, job, ends, isAuthorized), client);
  // Where the client disconnects before it requests the first chunk, the generator never begins.
  onAbort(ends, endCount);
  return new Response(body, {
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
  chunks: AsyncGenerator<string, void>,
  over: AbortController,
  timeoutMs = unreadMs,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const unread = setTimeout(() => over.abort(), timeoutMs).unref();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        clearTimeout(unread);
        try {
          const { value, done } = await chunks.next();
          if (done !== true) {
            controller.enqueue(encoder.encode(value));
            return;
          }
        } catch (error) {
          over.abort();
          throw error;
        }
        over.abort();
        controller.close();
      },
      async cancel() {
        clearTimeout(unread);
        over.abort();
        await chunks.return();
      },
    },
    { highWaterMark: 0 },
  );
}

async function* follow(
  relay: Relay,
  first: JobRow,
  ends: readonly AbortSignal[],
  isAuthorized: () => Promise<boolean>,
): AsyncGenerator<string, void> {
  const changed = new Set<Change>();
  const signal = new Signal();
  const wake = () => signal.raise();
  const unwatch = await changesOf(relay.store).watch(first.id, (change) => {
    changed.add(change);
    signal.raise();
  });
  const unhook = onAbort(ends, wake);
  const sent = { status: '', step: '', preview: '' };
  /** The event's text; empty where it would repeat the last one of its type. */
  const format = (event: PredictionEvent): string => {
    const { type, ...data } = event;
    const text = JSON.stringify(data);
    if (sent[type] === text) return '';
    sent[type] = text;
    return `event: ${type}\ndata: ${text}\n\n`;
  };
  try {
    yield 'retry: 3000\n\n';
    let quietSince = performance.now();
    changed.add('preview');
    while (!ends.some(({ aborted }) => aborted)) {
      const wantsPreview = changed.has('preview');
      changed.clear();
      // At every read, every few seconds at the latest: the lookup of keys has a cache.
      if (!(await isAuthorized())) return;
      const job = await relay.jobs.get(first.id);
      if (job === null) return;
      let text = '';
      if (!isTerminal(job)) {
        if (job.progress !== null) text += format(stepOf(job.progress));
        const preview = wantsPreview ? await relay.jobs.preview(job.id) : null;
        if (preview !== null) text += format({ type: 'preview', ...preview });
      }
      // A new status comes before its steps; the terminal status comes last.
      text = format({ type: 'status', prediction: await describeWithPosition(relay, job) }) + text;
      if (text !== '') {
        quietSince = performance.now();
        yield text;
      } else if (performance.now() - quietSince >= heartbeatMs) {
        quietSince = performance.now();
        yield ': heartbeat\n\n';
      }
      if (isTerminal(job)) return;
      await signal.wait(readEveryMs);
    }
  } finally {
    unwatch();
    unhook();
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

function stepOf(progress: NonNullable<JobRow['progress']>): PredictionEvent {
  return {
    type: 'step',
    phase: progress.phase ?? '',
    step: progress.step,
    steps: progress.steps,
    seconds_remaining: progress.secondsRemaining,
  };
}
