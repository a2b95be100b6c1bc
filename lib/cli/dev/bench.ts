import { printError, usageError } from '../arguments';

/** A benchmark, loaded when it is asked for; `args` is what follows its name. */
interface Bench {
  readonly summary: string;
  run(args: readonly string[]): Promise<void>;
}

const benches: Readonly<Record<string, Bench>> = {
  model: {
    summary: 'layers of a model at its real widths, with random weights',
    run: async (args) => (await import('./bench/model')).benchModel(args),
  },
  kernels: {
    summary: 'kernels of our own and of the runtime at the widths of the 5B; a page with --export',
    run: async (args) => (await import('./bench/kernels')).benchKernels(args),
  },
  profiles: {
    summary: 'counted work of the profiles of the 5B',
    run: async (args) => (await import('./bench/profiles')).benchProfiles(args),
  },
  relay: {
    summary: 'requests to the server through HTTP',
    run: async () => (await import('./bench/relay-http')).benchHttp(),
  },
};

const help = `npm run bench -- NAME [options]

Measures speed on this machine. NAME --help lists the options of a benchmark.

${Object.entries(benches)
  .map(([name, { summary }]) => `  ${name.padEnd(10)} ${summary}`)
  .join('\n')}
`;

process.exitCode = await main(process.argv.slice(2));

async function main([name = '--help', ...args]: readonly string[]): Promise<number> {
  if (name === '--help' || name === '-h') {
    process.stdout.write(help);
    return 0;
  }
  const bench = Object.hasOwn(benches, name) ? benches[name] : undefined;
  try {
    if (!bench) throw usageError('bench', `There is no benchmark "${name}".`);
    await bench.run(args);
    return 0;
  } catch (thrown) {
    return printError(thrown);
  }
}
