import { DrizzleQueryError } from 'drizzle-orm';
import { ApiError } from '../../lib/contract/v3';

/** Node's codes for a server that is not there or went away. */
const networkCodes =
  /^(ECONN(REFUSED|RESET|ABORTED)|E(HOST|NET)UNREACH|ENOTFOUND|EAI_AGAIN|EPIPE|ETIMEDOUT|ENOENT)$/;
/**
 * SQLSTATEs of a database that cannot work now: connection exceptions (class 08), lack of resources
 * (53: disk, memory, connections), shutdown and start-up (57P0x), a statement over its time (57014),
 * a read-only standby (25006), an input or output error of the disk (58). And a transaction
 * that was rolled back because of another one (40001, 40P01), which may be repeated.
 */
const unavailableStates = /^(08...|53...|57P0.|57014|25006|58...|40001|40P01)$/;
/** Messages of `pg` and PGlite without a code. */
const unavailableMessages =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|Cannot use a pool after calling end|Client was closed|PGlite is clos)/;

/**
 * The API's error for an error of the database.
 *
 * @returns `STORAGE_DOWN` where the database could not be reached or cannot work now; null for any
 * other error, which is a fault of ours
 */
export function storageDown(thrown: unknown): ApiError | null {
  for (const error of causesOf(thrown)) {
    if (error instanceof ApiError) return error.code === 'STORAGE_DOWN' ? error : null;
    const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
    const isCode = networkCodes.test(code) || unavailableStates.test(code);
    if (isCode || unavailableMessages.test(error.message))
      return new ApiError('STORAGE_DOWN', undefined, { cause: withoutValues(thrown) });
  }
  return null;
}

/**
 * Runs work on the database and names its errors.
 *
 * Drizzle's own error carries the statement's values, prompts among them, in its message: it never
 * leaves this function, so that it reaches no log.
 *
 * @throws ApiError `STORAGE_DOWN` where the database is not there; every other error as it is
 */
export async function storageErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (thrown) {
    throw storageDown(thrown) ?? withoutValues(thrown);
  }
}

/** The same methods, each under {@link storageErrors}. */
export function withStorageErrors<Methods extends object>(methods: Methods): Methods {
  return new Proxy(methods, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      return (...args: unknown[]) => storageErrors(() => method.apply(target, args));
    },
  });
}

/** The error under Drizzle's, which names no values; any other error as it is. */
export function withoutValues(thrown: unknown): unknown {
  if (!(thrown instanceof DrizzleQueryError)) return thrown;
  if (!(thrown.cause instanceof Error)) return new Error('A statement failed.');
  const cause: Error & { detail?: unknown; where?: unknown; params?: unknown } = thrown.cause;
  // "Key (id)=(…) already exists" and its like quote values too.
  delete cause.detail;
  delete cause.where;
  delete cause.params;
  return cause;
}

/** An error and its causes, at most five deep, with the errors of each address that was tried. */
export function* causesOf(thrown: unknown): Iterable<Error> {
  let current = thrown;
  for (let depth = 0; current instanceof Error && depth < 5; depth++) {
    yield current;
    if (current instanceof AggregateError) {
      for (const error of current.errors) if (error instanceof Error) yield error;
    }
    current = current.cause;
  }
}
