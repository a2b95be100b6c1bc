import type { Relay } from './relay';

/** Answers one request of the API; lives on the server's side of the door. */
export type Answer = (relay: Relay, request: Request) => Promise<Response>;

interface Room {
  readonly relay: Relay;
  readonly answer: Answer;
}

/**
 * Next bundles its route handlers apart from the server that carries it, so a module of ours exists
 * twice in the process, with two of each class and variable. `globalThis` is the one thing both see
 * (v3-api.md §4). That is why this file imports only types: the route handlers find the running relay
 * here, and the code that answers is the server's own copy.
 */
const place = Symbol.for('kinora.relay');
const shared = globalThis as typeof globalThis & { [place]?: Room };

/** Puts the running relay where the route handlers find it. @returns takes it away again */
export function setRelay(relay: Relay, answer: Answer): () => void {
  const room: Room = { relay, answer };
  shared[place] = room;
  return () => {
    if (shared[place] === room) delete shared[place];
  };
}

/** Answers a request through the running relay; 503 where this process has none, as under `next start`. */
export async function handle(request: Request): Promise<Response> {
  const room = shared[place];
  if (room !== undefined) return room.answer(room.relay, request);
  const requestId = crypto.randomUUID();
  return Response.json(
    {
      code: 503,
      message: 'The relay does not run in this process. Start the server with `npm start`.',
      error_code: 'SHUTTING_DOWN',
      request_id: requestId,
    },
    {
      status: 503,
      headers: { 'X-Request-Id': requestId, 'Cache-Control': 'no-store', 'Retry-After': '5' },
    },
  );
}
