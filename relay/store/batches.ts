import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { storageDown } from './errors';

/** Items that share one statement and one commit. */
const batchSize = 64;
/**
 * Wait where fewer are there than went together the last time, in milliseconds. Measured with 16
 * submissions at a time: 1.7 in a batch and 280 answers per second without it, 14 and 370 with it.
 */
const lingerMs = 4;

interface Waiting<Item, Result> {
  readonly item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * Writes items together. Those that arrive while a statement is under way go together in the next one:
 * on the embedded database a statement costs more than its rows, on PostgreSQL a commit does. Under
 * load each may wait {@link lingerMs} for others.
 *
 * @param write one statement for all of them; its results are in the order of the items. Where it
 * throws, none is written, and each is tried alone: one that the database refuses takes no other with it
 * @returns a function that writes one item, and throws what `write` throws for it
 */
export function inBatches<Item, Result>(
  write: (items: readonly Item[]) => Promise<readonly Result[]>,
): (item: Item) => Promise<Result> {
  let waiting: Waiting<Item, Result>[] = [];
  let running = false;
  /** How many went together the last time: after one that went alone nobody is waited for. */
  let last = 1;

  async function run(): Promise<void> {
    running = true;
    while (waiting.length > 0) {
      // The embedded database lets nobody in between the steps of a statement: without this turn of the
      // loop, whatever is ready to arrive would find its place only in a batch of its own.
      await nextTurn();
      if (waiting.length < last) await delay(lingerMs);
      const batch = waiting.slice(0, batchSize);
      waiting = waiting.slice(batchSize);
      last = batch.length;
      await writeBatch(batch);
    }
    running = false;
  }

  async function writeBatch(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    let results: readonly Result[];
    try {
      results = await write(batch.map(({ item }) => item));
    } catch (error) {
      if (batch.length > 1 && !storageDown(error)) {
        for (const one of batch) await writeBatch([one]);
      } else for (const { reject } of batch) reject(error);
      return;
    }
    if (results.length === batch.length) {
      for (const [index, result] of results.entries()) batch[index]?.resolve(result);
    } else {
      // What was written is not written again.
      for (const { reject } of batch) reject(new Error('A batch was not answered whole.'));
    }
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (!running) void run();
    });
}
