import { toKinoraError } from '../contract';
import type { Bench } from './bench/cases';

/** Every benchmark, loaded when it is asked for. Those of `quick` run when no name is given. */
const benches: Readonly<Record<string, Bench & { readonly quick?: boolean }>> = {
  noise: {
    summary: 'initial noise of a 5B clip',
    quick: true,
    run: async () => (await import('./bench/noise')).benchNoise(),
  },
  quantise: {
    summary: 'one linear layer to 8-bit blocks',
    quick: true,
    run: async () => (await import('./bench/quantise')).benchQuantise(),
  },
  image: {
    summary: 'a photo to the native size',
    quick: true,
    run: async () => (await import('./bench/image')).benchImage(),
  },
  scaler: {
    summary: 'a decoded frame to the size of the video',
    quick: true,
    run: async () => (await import('./bench/image')).benchScaler(),
  },
  tiny: {
    summary: 'the tiny model on the CPU: one step, one latent frame decoded',
    quick: true,
    run: async () => (await import('./bench/tiny')).benchTiny(),
  },
  convert: {
    summary: 'element types of public weight files to blocks, as a download converts them',
    run: async () => {
      const { benchConvert } = await import('./bench/convert');
      await benchConvert((text) => void process.stdout.write(text));
    },
  },
  stream: {
    summary: 'the loop with its blocks on the device, and streamed from storage',
    run: async (args) => (await import('./bench/stream')).benchStream(args),
  },
  relay: {
    summary: 'the server: its store, webhooks, and requests through HTTP',
    run: async (args) => (await import('./bench/relay')).benchRelay(args),
  },
  model: {
    summary: 'layers of a model at its real widths, with random weights',
    run: async (args) => (await import('./bench/model')).benchModel(args),
  },
};

const help = `npm run bench -- [NAME] [options]

Measures speed on this machine. Without a name the quick ones run; NAME --help tells its options.

${Object.entries(benches)
  .map(([name, { summary }]) => `  ${name.padEnd(10)} ${summary}`)
  .join('\n')}
`;

process.exitCode = await main(process.argv.slice(2));

async function main([name, ...args]: readonly string[]): Promise<number> {
  try {
    if (name === '--help' || name === '-h') {
      process.stdout.write(help);
      return 0;
    }
    if (name === undefined) {
      for (const { quick, run } of Object.values(benches)) if (quick) await run([]);
      return 0;
    }
    const bench = Object.hasOwn(benches, name) ? benches[name] : undefined;
    if (!bench) {
      process.stderr.write(`There is no benchmark "${name}".\n\n${help}`);
      return 1;
    }
    await bench.run(args);
    return 0;
  } catch (thrown) {
    const error = toKinoraError(thrown);
    process.stderr.write(`${error.code}: ${error.message}\n${error.remedy}\n`);
    return 1;
  }
}
