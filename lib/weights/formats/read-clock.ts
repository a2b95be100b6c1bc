import type { Checkpoint } from './checkpoint';

const seconds = new Map<string, number>();

/** Seconds in which this thread read and decoded tensors so far, by their component. */
export function readSeconds(): Readonly<Record<string, number>> {
  return Object.fromEntries(seconds);
}

/**
 * The same checkpoint, of which every read is timed: the next layer is read while one is computed, so the time of a
 * phase does not tell it. Reads that overlap count once.
 */
export function clocked<C extends Checkpoint>(component: string, checkpoint: C): C {
  let running = 0;
  let since = 0;
  async function timed<T>(read: () => Promise<T>): Promise<T> {
    if (running++ === 0) since = performance.now();
    try {
      return await read();
    } finally {
      if (--running === 0) {
        const passed = (performance.now() - since) / 1000;
        seconds.set(component, (seconds.get(component) ?? 0) + passed);
      }
    }
  }
  return {
    ...checkpoint,
    read: (name: string) => timed(() => checkpoint.read(name)),
    readRows: (name: string, rows: readonly number[]) =>
      timed(() => checkpoint.readRows(name, rows)),
    readStored: (names: readonly string[]) => timed(() => checkpoint.readStored(names)),
  };
}
