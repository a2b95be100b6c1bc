import { KinoraError } from '../../lib/contract/errors';

/** Web Lock of the tab that serves. */
const servingLock = 'kinora:serving';
/** Time limit for the other tab's answer, in milliseconds. */
const answerTimeoutMs = 500;

/** The serving tab's answer to another tab. */
interface Holder {
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

/**
 * Acquires the serving lock of this browser and holds it until `signal` aborts. Browsers do not freeze a
 * hidden tab that holds a Web Lock.
 *
 * @throws KinoraError `BUSY`, with the name of the tab that holds the lock
 */
export async function acquireServingLock(name: string, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    navigator.locks
      .request(servingLock, { ifAvailable: true }, async (lock) => {
        if (!lock) throw await describeOther();
        resolve();
        await answerOthers({ name, since: Date.now() }, signal);
      })
      .catch(reject);
  });
}

/** Answers other tabs until `signal` aborts. */
function answerOthers(holder: Holder, signal: AbortSignal): Promise<void> {
  const channel = new BroadcastChannel(servingLock);
  channel.addEventListener('message', ({ data }) => {
    if (data === 'who') channel.postMessage(holder);
  });
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => {
      channel.close();
      resolve();
    });
    if (signal.aborted) resolve();
  });
}

async function describeOther(): Promise<KinoraError> {
  const channel = new BroadcastChannel(servingLock);
  const answer = new Promise<Holder | null>((resolve) => {
    channel.addEventListener('message', ({ data }: MessageEvent<Holder | 'who'>) => {
      if (data !== 'who') resolve(data);
    });
    setTimeout(resolve, answerTimeoutMs, null);
  });
  channel.postMessage('who');
  const holder = await answer;
  channel.close();
  const since = holder ? `, as “${holder.name}” since ${timeOf(holder.since)}` : '';
  return new KinoraError('BUSY', `Another tab of this browser already serves${since}.`, {
    remedy: 'Use that tab, or disconnect it first: both would use the same GPU.',
  });
}

function timeOf(ms: number): string {
  return new Date(ms).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
}
