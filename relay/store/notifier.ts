import type { Channel } from './store';

/** One message. */
export interface Message {
  readonly channel: Channel;
  readonly payload: string;
}

/**
 * Gathers messages and sends them in batches: under load a NOTIFY for every submission would cost as
 * much as the submission. Equal messages of a batch are sent once.
 *
 * @param send never called twice at a time; its errors only reach `onError`, because
 * receivers also look at intervals
 */
export function createBatcher(
  send: (messages: readonly Message[]) => Promise<void>,
  onError: (error: unknown) => void,
): { add(channel: Channel, payload: string): Promise<void>; flushed(): Promise<void> } {
  let waiting = new Map<string, Message>();
  let running: Promise<void> | null = null;

  async function run(): Promise<void> {
    // Messages of the same turn of the event loop belong to the batch.
    await new Promise<void>((resolve) => setImmediate(resolve));
    while (waiting.size > 0) {
      const batch = [...waiting.values()];
      waiting = new Map();
      try {
        await send(batch);
      } catch (error) {
        onError(error);
      }
    }
    running = null;
  }

  return {
    add(channel, payload) {
      waiting.set(`${channel} ${payload}`, { channel, payload });
      running ??= run();
      return running;
    },
    flushed: () => running ?? Promise.resolve(),
  };
}

/** Listeners of this process by channel. */
export class Listeners {
  readonly #byChannel = new Map<Channel, Set<(payload: string) => void>>();

  /** @param onError a listener that throws disturbs no other */
  constructor(readonly onError: (error: unknown) => void) {}

  add(channel: Channel, onMessage: (payload: string) => void): () => void {
    // A function of its own, so that the same listener added twice is removed once.
    const listener = (payload: string) => onMessage(payload);
    const listeners = this.#byChannel.get(channel) ?? new Set();
    this.#byChannel.set(channel, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  emit(channel: Channel, payload: string): void {
    for (const listener of this.#byChannel.get(channel) ?? []) {
      try {
        listener(payload);
      } catch (error) {
        this.onError(error);
      }
    }
  }

  clear(): void {
    this.#byChannel.clear();
  }
}
