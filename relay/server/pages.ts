import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** What answers everything that the Node server does not answer itself: Next, or a test's stand-in. */
export interface Pages {
  /** Whether more than GET and HEAD means anything outside of the API: Next's tools in development. */
  readonly anyMethod?: boolean;
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Takes over an upgraded connection; absent where there are none. */
  upgrade?(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  close(): Promise<void>;
}
