import type { PredictionEvent } from '../../lib/contract/v3';
import type { Relay } from '../relay';
import type { JobRow } from '../store/schema';
import { type Change, changesOf, lookEveryMs, onAbort, Signal } from './changes';
import { describeWithPosition, isTerminal } from './describe';
import type { HandlerOf } from './handler';
import { ownJob } from './predictions';

/** Proxies cut connections on which nothing comes. */
const heartbeatMs = 15_000;

/**
 * `GET …/events`: the state at once, then what changes, until the terminal status. Changes are flags,
 * not a queue: a slow reader gets the latest state and never a backlog.
 */
export const events: HandlerOf<'events'> = async (relay, { params, caller, request }) => {
  const job = await ownJob(relay, params.id, caller);
  const client = new AbortController();
  const chunks = follow(relay, job, [client.signal, request.signal, relay.stopping]);
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>(
    {
      // Asked for one chunk at a time, as fast as the client reads.
      async pull(controller) {
        const { value, done } = await chunks.next();
        if (done === true) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
      async cancel() {
        client.abort();
        await chunks.return();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, {
    headers: {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    },
  });
};

async function* follow(
  relay: Relay,
  first: JobRow,
  ends: readonly AbortSignal[],
): AsyncGenerator<string, void> {
  const changed = new Set<Change>();
  const signal = new Signal();
  const wake = () => signal.raise();
  const unwatch = await changesOf(relay.store).watch(first.id, (change) => {
    changed.add(change);
    signal.raise();
  });
  const unhook = onAbort(ends, wake);
  const told = { status: '', step: '', preview: '' };
  /** The event's text, where it says anything that was not said. */
  const news = (event: PredictionEvent): string => {
    const { type, ...data } = event;
    const text = JSON.stringify(data);
    if (told[type] === text) return '';
    told[type] = text;
    return `event: ${type}\ndata: ${text}\n\n`;
  };
  try {
    yield 'retry: 3000\n\n';
    let quietSince = performance.now();
    changed.add('preview');
    while (!ends.some(({ aborted }) => aborted)) {
      const wantsPreview = changed.has('preview');
      changed.clear();
      const job = await relay.jobs.get(first.id);
      if (job === null) return;
      let text = '';
      if (!isTerminal(job)) {
        if (job.progress !== null) text += news(stepOf(job.progress));
        const preview = wantsPreview ? await relay.jobs.preview(job.id) : null;
        if (preview !== null) text += news({ type: 'preview', ...preview });
      }
      // A status that is new goes before the steps that belong to it; the last one goes last.
      text = news({ type: 'status', prediction: await describeWithPosition(relay, job) }) + text;
      if (text !== '') {
        quietSince = performance.now();
        yield text;
      } else if (performance.now() - quietSince >= heartbeatMs) {
        quietSince = performance.now();
        yield ': still here\n\n';
      }
      if (isTerminal(job)) return;
      await signal.wait(lookEveryMs);
    }
  } finally {
    unwatch();
    unhook();
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
