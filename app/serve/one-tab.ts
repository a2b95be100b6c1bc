import { KinoraError } from '../../lib/contract/errors';

/** Held by the one tab of this browser that serves, as long as it does. */
export const servingLock = 'kinora:serving';
/** How long the tab that serves may take to say who it is, in milliseconds. */
const answerMs = 500;

/** What the tab that serves tells another one. */
interface Holder {
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

/**
 * Becomes the one tab of this browser that serves, until the signal. The lock also keeps the browser
 * from freezing a hidden tab.
 *
 * @throws KinoraError `BUSY`, saying which tab it is
 */
export async function serveAlone(name: string, signal: AbortSignal): Promise<void> {
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

/** Tells whoever asks, until the signal. */
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
    setTimeout(resolve, answerMs, null);
  });
  channel.postMessage('who');
  const holder = await answer;
  channel.close();
  const since = holder ? `, as “${holder.name}” since ${timeOf(holder.since)}` : '';
  return new KinoraError('BUSY', `Another tab of this browser serves already${since}.`, {
    remedy: 'Go on there, or disconnect it first: there is one GPU.',
  });
}

function timeOf(ms: number): string {
  return new Date(ms).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
}
