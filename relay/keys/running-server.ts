import { z } from 'zod';
import type { Config } from '../config';
import { type Control, readControl } from './control';

/** The running server would not do what a command asked. */
export class ServerRefusal extends Error {
  override readonly name = 'ServerRefusal';
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** The server that runs on this folder; null where none does. */
export async function findServer(config: Pick<Config, 'KINORA_DATA'>): Promise<Control | null> {
  const control = await readControl(config);
  return control && (await answers(control)) ? control : null;
}

/** The process of the control file may have died, and its number may be another's by now. */
async function answers({ origin }: Control): Promise<boolean> {
  try {
    await fetch(`${origin}/healthz`, { signal: AbortSignal.timeout(5000) });
    return true;
  } catch (error) {
    // Refused: nobody listens. Anything else may be a server that is busy.
    const cause = error instanceof Error ? error.cause : undefined;
    return !(cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED');
  }
}

/**
 * Asks the running server, as its own user on its own machine.
 *
 * @param path where it is not the endpoint's own: filled in, or with a query
 * @throws ServerRefusal with the server's sentence
 */
export async function askServer<Answer extends z.ZodType>(
  { origin, token }: Control,
  endpoint: { readonly method: string; readonly path: string; readonly answer: Answer },
  { path = endpoint.path, body }: { path?: string; body?: unknown } = {},
): Promise<z.output<Answer>> {
  const response = await fetch(origin + path, {
    method: endpoint.method,
    headers: {
      Authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(30_000),
  });
  const answer: unknown = await response.json().catch(() => null);
  if (response.ok) return endpoint.answer.parse(answer);
  const refusal = z.object({ message: z.string() }).safeParse(answer);
  const sentence = refusal.data?.message ?? `The server answered ${response.status}.`;
  throw new ServerRefusal(response.status, sentence);
}
