/** One measurement: what ran, and what its work is counted in. */
export interface Case {
  readonly name: string;
  readonly unit: string;
  /** Units of work in one run. */
  readonly amount: number;
  run(): unknown;
}

/** A benchmark by name: `npm run bench -- NAME [options]`. */
export interface Bench {
  /** One line for the list of names. */
  readonly summary: string;
  /** @param args what follows the name */
  run(args: readonly string[]): Promise<void>;
}

/** Times cases one after another and prints a line for each. */
export async function runCases(cases: readonly Case[]): Promise<void> {
  for (const { name, unit, amount, run } of cases) {
    const seconds = await median(run);
    const rate = (amount / seconds).toPrecision(3);
    const time = `${(seconds * 1000).toFixed(1)} ms`;
    process.stdout.write(`${name.padEnd(46)}${time.padStart(12)}   ${rate} ${unit}/s\n`);
  }
}

/** Median of up to 9 runs, or of as many as fit into three seconds; the first one is not counted. */
async function median(run: () => unknown): Promise<number> {
  await run();
  const seconds: number[] = [];
  const end = performance.now() + 3000;
  while (seconds.length < 9 && (seconds.length < 3 || performance.now() < end)) {
    const start = performance.now();
    await run();
    seconds.push((performance.now() - start) / 1000);
  }
  return seconds.sort((a, b) => a - b)[Math.floor(seconds.length / 2)] ?? Number.NaN;
}
