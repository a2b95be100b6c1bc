/** What came back, read whole. */
export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  /** The JSON body; null where there is none. */
  readonly json: {
    readonly code: number;
    readonly message: string;
    readonly error_code?: string;
    readonly request_id?: string;
    readonly details?: readonly { field: string; message: string }[];
    // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
    readonly data?: any;
  };
}

/** Parts of a request. An object as the body is sent as JSON, a text as it is. */
export interface Sent {
  readonly key?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** A request of the API. */
export function requestOf(method: string, address: string, sent: Sent = {}): Request {
  const { key, body, headers, signal } = sent;
  return new Request(address, {
    method,
    redirect: 'manual',
    ...(signal && { signal }),
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    headers: {
      ...(key !== undefined && { Authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...headers,
    },
  });
}

export async function readAnswer(response: Response): Promise<Answered> {
  const json = JSON.parse((await response.text()) || 'null') as Answered['json'];
  return { status: response.status, headers: response.headers, json };
}
