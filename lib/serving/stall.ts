import { Unreachable } from './unreachable';

/**
 * Work that ends where nothing comes any more.
 *
 * @param stallMs how long it may bring nothing, in milliseconds
 * @param work calls `came` whenever something has come
 * @throws Unreachable after that time; what the work throws
 */
export async function withStall<T>(
  stallMs: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal, came: () => void) => Promise<T>,
): Promise<T> {
  const stalled = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const came = () => {
    clearTimeout(timer);
    timer = setTimeout(() => stalled.abort(), stallMs);
  };
  came();
  try {
    return await work(AbortSignal.any([stalled.signal, ...(signal ? [signal] : [])]), came);
  } catch (thrown) {
    signal?.throwIfAborted();
    if (stalled.signal.aborted) throw new Unreachable('the server sends nothing more');
    throw thrown;
  } finally {
    clearTimeout(timer);
  }
}
