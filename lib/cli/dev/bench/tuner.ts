import { oneOf, readArguments, usageError } from '../../arguments';
import { HeadlessPage } from '../../browser/headless-page';
import { launchBrowser } from '../../browser/launch';
import { servePages } from '../../browser/page-bundle';

const help = `npm run bench -- tuner [--kernels MODE]

Checks and measures the kernels of Kinora on this machine's GPU, as the first video does, and prints what is then
remembered of it as JSON: the winners, their speed in FLOP/s, and why other variants are not used. Where the CPU
emulates the GPU nothing is measured: the smallest kernels that compute right numbers win.

  --kernels MODE   exact, fast or matrix (default exact)
`;

const modes = ['exact', 'fast', 'matrix'] as const;
const optionTypes = {
  kernels: { type: 'string', default: 'exact' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** `npm run bench -- tuner` */
export async function benchTuner(args: readonly string[]): Promise<void> {
  const refuse = (sentence: string) => usageError('bench', sentence);
  const { values } = readArguments(args, optionTypes, refuse);
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const mode = oneOf('--kernels', modes, values.kernels);
  const pages = await servePages();
  try {
    const { browser } = await launchBrowser();
    try {
      const page = await HeadlessPage.open(browser, pages.base, () => undefined);
      process.stdout.write(`${JSON.stringify(await page.call('tune', mode), null, 2)}\n`);
    } finally {
      await browser.close();
    }
  } finally {
    await pages.close();
  }
}
