import type { RawData, WebSocket } from 'ws';
import {
  ApiError,
  type DoorbellServerMessage,
  doorbellClientSchema,
  type WorkerDeclaration,
} from '../../lib/contract/v3';
import type { Caller, Keys } from '../relay';
import type { WorkerRow } from '../store/schema';
import type { Ringable } from './ringer';

/** How long a socket may say nothing before it says hello. */
const helloMs = 5000;

/** Why a socket is closed: RFC 6455 §7.4.1, and our own from 4000 on. */
export const closeCodes = {
  goingAway: 1001,
  restart: 1012,
  badMessage: 4400,
  unauthorized: 4401,
  helloTimeout: 4408,
} as const;

/** What a tab tells the doorbell. */
export interface TabEvents {
  /** It said hello and was let in. */
  onWelcome(tab: Tab): void;
  onState(tab: Tab): void;
  /** Its token is none. @throws ApiError when its address has sent too many */
  onBadToken(tab: Tab): Promise<void>;
  onClose(tab: Tab): void;
}

/** One open socket: nothing is known of it until its hello; from then on it is a worker's. */
export class Tab implements Ringable {
  rungAt = 0;
  state: WorkerRow['state'] = 'idle';
  /** What was written down last. */
  writtenState: WorkerRow['state'] = 'idle';
  caller: Caller | null = null;
  declaration: WorkerDeclaration | null = null;
  /** It answered the last ping, or is new. */
  #alive = true;
  #token = '';
  readonly #helloTimer: NodeJS.Timeout;

  constructor(
    readonly socket: WebSocket,
    /** The caller's, as the server tells it. */
    readonly address: string,
    readonly keys: Pick<Keys, 'authenticate'>,
    readonly events: TabEvents,
  ) {
    this.#helloTimer = setTimeout(() => {
      // Not refused: a tab that was asleep may come again.
      socket.close(closeCodes.helloTimeout, 'No hello came.');
    }, helloMs);
    socket.on('message', (data, isBinary) => void this.#hear(data, isBinary));
    socket.on('pong', () => {
      this.#alive = true;
    });
    // `ws` closes after an error by itself; without a listener the process would end.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(this.#helloTimer);
      events.onClose(this);
    });
  }

  get owner(): string {
    return this.caller?.owner ?? '';
  }
  get shared(): boolean {
    return this.caller?.shared === true;
  }
  get idle(): boolean {
    return this.caller !== null && this.state === 'idle';
  }
  /** Null before the hello. */
  get workerId(): string | null {
    return this.caller === null ? null : (this.declaration?.worker_id ?? null);
  }

  send(message: DoorbellServerMessage): void {
    if (this.socket.readyState === this.socket.OPEN) this.socket.send(JSON.stringify(message));
  }

  /** Says why, and closes: a tab that is refused does not come again. */
  refuse(code: number, message: string): void {
    this.send({ type: 'refused', message });
    this.socket.close(code, 'refused');
  }

  /**
   * Asks for a sign of life. A socket that gave none since the last time is cut: its other end is gone
   * without a word. A frozen tab does answer; whether its job lives is for the beats to say.
   */
  ping(): void {
    if (!this.#alive) {
      this.socket.terminate();
      return;
    }
    this.#alive = false;
    this.socket.ping();
  }

  /** Closes it when its token has been revoked meanwhile. */
  async recheck(): Promise<void> {
    if (this.caller === null) return;
    await this.#authenticate(this.#token);
  }

  async #hear(data: RawData, isBinary: boolean): Promise<void> {
    const message = isBinary ? null : read(data);
    if (message === null) {
      this.refuse(closeCodes.badMessage, 'This message is not one of the protocol.');
    } else if (message.type === 'hello') {
      await this.#hello(message);
    } else if (this.caller !== null && message.state !== this.state) {
      this.state = message.state;
      this.events.onState(this);
    }
  }

  async #hello(hello: ReturnType<typeof doorbellClientSchema.parse> & { type: 'hello' }) {
    clearTimeout(this.#helloTimer);
    // One hello a socket: a second one would change whose it is.
    if (this.declaration !== null) {
      this.refuse(closeCodes.badMessage, 'This socket has said hello already.');
      return;
    }
    this.declaration = hello.declaration;
    this.state = hello.state;
    this.#token = hello.token;
    const caller = await this.#authenticate(hello.token);
    if (caller === null || this.socket.readyState !== this.socket.OPEN) return;
    this.caller = caller;
    this.send({ type: 'welcome', owner: caller.owner, shared: caller.shared });
    this.events.onWelcome(this);
  }

  async #authenticate(token: string): Promise<Caller | null> {
    try {
      return await this.keys.authenticate(`Bearer ${token}`, 'worker');
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) {
        let sentence = error.message;
        // Counted as over HTTP; a token that was revoked meanwhile is no guess.
        if (error.code === 'UNAUTHORIZED' && this.caller === null) {
          const tooMany: unknown = await this.events.onBadToken(this).catch((thrown) => thrown);
          if (tooMany instanceof ApiError) sentence = tooMany.message;
        }
        this.refuse(closeCodes.unauthorized, sentence);
      } else if (this.caller === null) {
        // The storage is down: the tab comes back later, as after a restart.
        this.socket.close(closeCodes.restart);
      }
      return null;
    }
  }
}

function read(data: RawData) {
  try {
    const parsed = doorbellClientSchema.safeParse(JSON.parse(data.toString()));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}
