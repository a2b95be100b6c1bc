import {
  type DoorbellClientMessage,
  type DoorbellServerMessage,
  doorbellServerSchema,
} from '../contract/v3/worker';
import { type Clock, systemClock } from '../weights/hub/retry';
import { Backoff } from './backoff';

/** What is used of a WebSocket. */
export type Socket = Pick<WebSocket, 'send' | 'close' | 'addEventListener'>;

export interface DoorbellOptions {
  /** Origin of the relay. */
  readonly server: string;
  /** First message of every connection. */
  readonly hello: () => DoorbellClientMessage;
  readonly onMessage: (message: DoorbellServerMessage) => void;
  readonly onOpen: (open: boolean) => void;
  readonly connect?: (url: string) => Socket;
  readonly clock?: Clock;
}

const firstDelayMs = 1000;
const longestDelayMs = 30_000;

/**
 * The WebSocket through which the relay rings. It carries no work: everything goes on without it, only
 * later. It comes back by itself, with growing waits, until it is closed or refused.
 */
export class Doorbell {
  readonly #options: DoorbellOptions;
  readonly #backoff: Backoff;
  readonly #clock: Clock;
  readonly #over = new AbortController();
  #socket: Socket | null = null;
  #open = false;

  constructor(options: DoorbellOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#backoff = new Backoff(firstDelayMs, longestDelayMs, this.#clock.random);
    this.#connect();
  }

  /** Whether the relay has said welcome. */
  get open(): boolean {
    return this.#open;
  }

  /** Tells the relay; nothing happens while there is no connection, the next hello says it. */
  say(message: DoorbellClientMessage): void {
    if (this.#open) this.#socket?.send(JSON.stringify(message));
  }

  close(): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    this.#socket?.close(1000);
    this.#setOpen(false);
  }

  #connect(): void {
    const url = new URL('/api/worker/doorbell', this.#options.server);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const { connect = (address: string) => new WebSocket(address) } = this.#options;
    const socket = connect(url.href);
    this.#socket = socket;
    socket.addEventListener('open', () => socket.send(JSON.stringify(this.#options.hello())));
    socket.addEventListener('message', ({ data }) => this.#take(data));
    // A failed connection closes too; its error has nothing to add.
    socket.addEventListener('close', () => this.#closed());
  }

  #take(data: unknown): void {
    if (this.#over.signal.aborted || typeof data !== 'string') return;
    const message = parse(data);
    if (!message) return;
    if (message.type === 'welcome') {
      this.#backoff.reset();
      this.#setOpen(true);
    }
    this.#options.onMessage(message);
    if (message.type === 'refused') this.close();
  }

  #closed(): void {
    this.#setOpen(false);
    const { signal } = this.#over;
    if (signal.aborted) return;
    this.#clock.sleep(this.#backoff.next(), signal).then(
      () => this.#connect(),
      () => {},
    );
  }

  #setOpen(open: boolean): void {
    if (this.#open === open) return;
    this.#open = open;
    this.#options.onOpen(open);
  }
}

/** A message of a later version that is not known here is no message. */
function parse(data: string): DoorbellServerMessage | null {
  try {
    return doorbellServerSchema.safeParse(JSON.parse(data)).data ?? null;
  } catch {
    return null;
  }
}
