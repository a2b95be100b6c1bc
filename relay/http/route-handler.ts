import type { Relay } from '../open';

/** Answers one request of the API. The server passes its own function to {@link setRelay}. */
export type Answer = (relay: Relay, request: Request) => Promise<Response>;

/**
 * Next bundles its route handlers apart from the server that runs it, with a copy of each module. Both see the same
 * `globalThis` (../README.md). So this file imports only types: the code that answers is the server's own copy.
 */
const key = Symbol.for('kinora.relay');
const shared = globalThis as typeof globalThis & {
  [key]?: { readonly relay: Relay; readonly answer: Answer };
};

/** Registers the running relay for the route handlers. @returns a function that ends the registration */
export function setRelay(relay: Relay, answer: Answer): () => void {
  const registration = { relay, answer };
  shared[key] = registration;
  return () => {
    if (shared[key] === registration) delete shared[key];
  };
}

/** Answers a request through the running relay; 503 where this process has none, as under `next start`. */
export async function handle(request: Request): Promise<Response> {
  const registration = shared[key];
  if (registration !== undefined) return registration.answer(registration.relay, request);
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
