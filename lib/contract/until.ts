/** The outcome of `work`, or a rejection as soon as `signal` is aborted; `work` may then go on. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    // No caller awaits the work of an aborted call any more.
    work.catch(() => undefined);
  }
}

/** Signals of work about its progress. */
interface Pulse {
  /** Starts the time anew: something has come. */
  readonly came: () => void;
  /** Stops the time until something comes again. */
  readonly rest: () => void;
}

/**
 * Work that ends where nothing comes any more.
 *
 * @param stallMs how long it may bring nothing, in milliseconds
 * @param stall what is thrown after that time
 * @throws the signal's reason; what the work throws
 */
export async function untilStalled<T>(
  stallMs: number,
  stall: Error,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal, pulse: Pulse) => Promise<T>,
): Promise<T> {
  const stalled = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const rest = () => clearTimeout(timer);
  const came = () => {
    rest();
    timer = setTimeout(() => stalled.abort(stall), stallMs);
  };
  came();
  try {
    const either = AbortSignal.any([stalled.signal, ...(signal ? [signal] : [])]);
    return await work(either, { came, rest });
  } catch (thrown) {
    signal?.throwIfAborted();
    throw stalled.signal.aborted ? stall : thrown;
  } finally {
    rest();
  }
}
