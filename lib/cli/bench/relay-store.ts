import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { sql } from 'drizzle-orm';
import { openStore } from '../../../relay/store';
import { startPostgres } from '../../../relay/testing/postgres';
import { backlogKeys, fillQueue, measureStore, type Rates, rateNames } from './relay-store-load';

const help = `Measures the store: submissions, claims, completions with their webhook, and reads of results.

  --engine pglite|postgres   only this one
  --backlog N                jobs queued for the second round (100000)
  --count N                  operations of each kind and round (3000)
  --concurrency N            operations at a time (16)

PostgreSQL is DATABASE_URL_TEST where it is set, else one of our own that waits for the disk.
`;

/**
 * `npm run bench -- relay`, the part about the store: both engines, empty and with a long queue.
 *
 * @throws TypeError for an option that does not exist
 */
export async function benchStore(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      engine: { type: 'string' },
      backlog: { type: 'string', default: '100000' },
      count: { type: 'string', default: '3000' },
      concurrency: { type: 'string', default: '16' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const load = { count: Number(values.count), concurrency: Number(values.concurrency) };
  for (const engine of ['pglite', 'postgres']) {
    if (values.engine !== undefined && values.engine !== engine) continue;
    await benchEngine(engine, Number(values.backlog), load);
  }
}

async function benchEngine(
  engine: string,
  backlog: number,
  load: { count: number; concurrency: number },
): Promise<void> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'kinora-bench-'));
  const server = engine === 'postgres' ? await startPostgres({ durable: true }) : null;
  try {
    const url = await server?.database('kinora_bench');
    const store = await openStore({ KINORA_DATA: folder, DATABASE_URL: url });
    try {
      print(`${engine}, ${load.concurrency} at a time, ${load.count} of each`);
      // The first statements of an engine are slow: plans, caches, compilation.
      await measureStore(store, { ...load, count: Math.min(load.count, 300) });
      await store.db.execute(sql`truncate jobs, deliveries, previews`);
      const empty = await measureStore(store, load);
      printRates('empty', empty);
      await store.db.execute(sql`truncate jobs, deliveries, previews`);
      const start = performance.now();
      await fillQueue(store, backlog);
      const seconds = (performance.now() - start) / 1000;
      print(`  ${backlog} queued by ${backlogKeys} keys in ${seconds.toFixed(1)} s`);
      const full = await measureStore(store, load);
      printRates(`${backlog} queued`, full, empty);
    } finally {
      await store.close();
    }
  } finally {
    await server?.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function printRates(title: string, rates: Rates, base?: Rates): void {
  print(`  ${title}`);
  for (const name of rateNames) {
    const { perSecond, p50Ms, p99Ms, cpuMs } = rates[name];
    const ratio = base ? `   ${compareRates(rates[name], base[name])}` : '';
    print(
      `    ${name.padEnd(20)}${perSecond.toFixed(0).padStart(7)}/s   ` +
        `p50 ${p50Ms.toFixed(1).padStart(6)} ms   p99 ${p99Ms.toFixed(1).padStart(6)} ms   CPU ${cpuMs.toFixed(2)} ms${ratio}`,
    );
  }
}

/** How a rate compares with that of the empty store, in words that hold whichever is faster. */
export function compareRates(
  rate: Pick<Rates[keyof Rates], 'perSecond' | 'cpuMs'>,
  base: Pick<Rates[keyof Rates], 'perSecond' | 'cpuMs'>,
): string {
  const speed = rate.perSecond / base.perSecond;
  const word = speed < 1 ? 'slower' : 'faster';
  const factor = (speed < 1 ? 1 / speed : speed).toFixed(2);
  const speeds = factor === '1.00' ? 'as fast' : `${factor}x ${word}`;
  return `${speeds}, ${(rate.cpuMs / base.cpuMs).toFixed(2)}x the CPU time`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
