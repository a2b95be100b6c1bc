export class GuardError extends Error {
  override readonly name = 'GuardError';
  constructor(
    readonly reason:
      | 'refused'
      | 'unreachable'
      | 'timeout'
      | 'too-large'
      | 'status'
      | 'busy'
      | 'redirects',
    /** One sentence without the address's secrets. */
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  get isPassing(): boolean {
    return this.reason === 'unreachable' || this.reason === 'timeout' || this.reason === 'busy';
  }
}

/** Statuses after which the next try may succeed, besides 5xx: Request Timeout, Too Early, Too Many Requests. */
const passingStatuses: readonly number[] = [408, 425, 429];

export function statusError(url: string, status: number): GuardError {
  const isPassing = status >= 500 || passingStatuses.includes(status);
  const sentence = `${new URL(url).host} answered ${status}.`;
  return new GuardError(isPassing ? 'busy' : 'status', sentence);
}

/** Error codes of Node, OpenSSL and undici, with the rest of the sentence about the host. */
const sentences: readonly (readonly [code: RegExp, rest: string, reason: GuardError['reason']])[] =
  [
    [/^(ENOTFOUND|EAI_\w+|ENODATA)$/, 'could not be found.', 'unreachable'],
    [/^ECONNREFUSED$/, 'refused the connection.', 'unreachable'],
    [/^UND_ERR_CONNECT_TIMEOUT$|^ETIMEDOUT$/, 'could not be reached in time.', 'timeout'],
    [/^UND_ERR_HEADERS_TIMEOUT$/, 'did not answer in time.', 'timeout'],
    [/^UND_ERR_BODY_TIMEOUT$/, 'stopped answering.', 'timeout'],
    [/^UND_ERR_HEADERS_OVERFLOW$|^HPE_/, 'did not answer in HTTP.', 'unreachable'],
    [/CERT|SIGNATURE|^ERR_TLS_|^EPROTO$|^ERR_SSL_/, 'has no valid TLS certificate.', 'unreachable'],
    [
      /^ECONNRESET$|^EPIPE$|^UND_ERR_SOCKET$|CONTENT_LENGTH/,
      'broke off the connection.',
      'unreachable',
    ],
  ];

/**
 * What went wrong, as one sentence that names at most the host. A refusal by the lookup is a cause of the
 * socket's error.
 */
export function toGuardError(thrown: unknown, host: string): GuardError {
  for (const error of withCauses(thrown)) {
    if (error instanceof GuardError) return error;
  }
  for (const error of withCauses(thrown)) {
    const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
    const known = sentences.find(([pattern]) => pattern.test(code));
    if (known) return new GuardError(known[2], `${host} ${known[1]}`, { cause: thrown });
  }
  return new GuardError('unreachable', `${host} could not be reached.`, { cause: thrown });
}

/** An error, the errors of each address that was tried, and their causes. */
function* withCauses(thrown: unknown): Generator<Error> {
  if (!(thrown instanceof Error)) return;
  yield thrown;
  if (thrown instanceof AggregateError) for (const inner of thrown.errors) yield* withCauses(inner);
  if (thrown.cause !== undefined) yield* withCauses(thrown.cause);
}
