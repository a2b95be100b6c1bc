import { toKinoraError } from '../contract';
import { usageError } from './arguments';

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
  tuner: {
    summary: 'what the tuner finds on this GPU, as JSON',
    run: async (args) => (await import('./bench/tuner')).benchTuner(args),
  },
  profiles: {
    summary: 'counted work of the profiles of the 5B, and what it comes to here',
    run: async (args) => (await import('./bench/profiles')).benchProfiles(args),
  },
  estimate: {
    summary: 'what a run says of its time left, against what it then took: first run and second',
    run: async (args) => (await import('./bench/estimate')).benchEstimate(args),
  },
  convert: {
    summary: 'element types of public weight files to blocks, as a download converts them',
    run: async () => (await import('./bench/convert')).benchConvert(),
  },
  stream: {
    summary: 'the loop with its blocks on the device, and streamed from storage',
    run: async (args) => (await import('./bench/stream')).benchStream(args),
  },
  optimizer: {
    summary: 'the language model that optimises prompts: load time, tokens per second, memory',
    run: async (args) => (await import('./bench/optimizer')).benchOptimizer(args),
  },
  relay: {
    summary: 'the server: its store, webhooks, and requests through HTTP',
    run: async (args) => (await import('./bench/relay')).benchRelay(args),
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
  if (!bench) {
    const error = usageError('bench', `There is no benchmark "${name}".`);
    process.stderr.write(`${error.code}: ${error.message}\n${error.remedy}\n`);
    return 1;
  }
  try {
    await bench.run(args);
    return 0;
  } catch (thrown) {
    const error = toKinoraError(thrown);
    process.stderr.write(`${error.code}: ${error.message}\n${error.remedy}\n`);
    return 1;
  }
}
