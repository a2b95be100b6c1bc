import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { KinoraError } from '../../../contract';
import type { KernelBenchOptions, KernelReport } from '../../../models/wan22/benchmark/kernels';
import {
  deviceLine,
  reportTables,
  tableText,
} from '../../../models/wan22/benchmark/kernels/tables';
import { readArguments, usageError } from '../../arguments';
import { launchBrowser } from '../../browser/launch';
import { serveFolders } from '../../file-server';
import { fromUser } from '../../paths';
import { writeKernelsPage } from './kernels-bundle';

const help = `npm run bench -- kernels [options]

Times the kernels of Wan2.2-TI2V-5B's operators with random weights of its widths, ours and ONNX Runtime's at the
same sizes, in headless Chromium: speed, share of the measured peak of this device, and what they come to for a video.

  --variants N      variants of each mode to measure, the best guesses first (default: all; 2 on a CPU emulation)
  --rounds N        measurements of each kernel (default 5; 2 on a CPU emulation)
  --tune            checks and tunes our variants of all modes first, as before a first video; left out on a CPU
                    emulation otherwise
  --block TOKENS    also measures a whole block of the transformer (default 4096; 0, none, on a CPU emulation)
  --json FILE       also writes all figures as JSON, again whenever one is known; - for standard output
  --export DIR      measures nothing; writes the page for any static server
`;

const optionTypes = {
  variants: { type: 'string' },
  rounds: { type: 'string' },
  tune: { type: 'boolean' },
  block: { type: 'string' },
  json: { type: 'string' },
  export: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** `npm run bench -- kernels` */
export async function benchKernels(args: readonly string[]): Promise<void> {
  const refuse = (sentence: string) => usageError('bench', sentence);
  const { values } = readArguments(args, optionTypes, refuse);
  if (values.help) return void process.stdout.write(help);
  if (values.export !== undefined) {
    const folder = fromUser(values.export);
    await writeKernelsPage(folder);
    process.stdout.write(`${folder}\n`);
    return;
  }
  const whole = (name: 'variants' | 'rounds') => {
    const text = values[name];
    if (text === undefined) return {};
    if (!/^[1-9]\d*$/.test(text)) throw refuse(`--${name} must be a whole number of at least 1.`);
    return { [name]: Number(text) };
  };
  const tune = values.tune === undefined ? {} : { tune: values.tune };
  const blockTokens = Number(values.block ?? 0);
  if (!Number.isInteger(blockTokens) || blockTokens < 0 || blockTokens % 2 !== 0) {
    throw refuse('--block must be an even number of tokens, or 0.');
  }
  const block = values.block === undefined ? {} : { blockTokens };
  const options = { ...whole('variants'), ...whole('rounds'), ...tune, ...block };
  const { json } = values;
  const silent = json === '-';
  const print = (text: string) => silent || process.stdout.write(`${text}\n`);
  const tables: string[] = [];
  const report = await measureKernels(options, (soFar) => {
    if (tables.length === 0) print(deviceLine(soFar));
    tables.splice(0, tables.length, ...reportTables(soFar).map(tableText));
    // At once: what follows may take the machine down.
    if (json !== undefined && !silent) writeFileSync(fromUser(json), jsonText(soFar));
    const last = soFar.lines.at(-1);
    if (last && process.stderr.isTTY) process.stderr.write(`${last.case}: ${last.variant}\n`);
  });
  for (const table of tables) print(`\n${table}`);
  if (silent) process.stdout.write(jsonText(report));
}

function jsonText(report: KernelReport): string {
  return `${JSON.stringify(report, null, 2)}\n`;
}

/**
 * Measures in headless Chromium, on the page that `--export` writes.
 *
 * @param onReport takes the report so far
 * @throws KinoraError what the page fails with
 */
export async function measureKernels(
  options: KernelBenchOptions,
  onReport: (report: KernelReport) => void,
): Promise<KernelReport> {
  const folder = await mkdtemp(path.join(tmpdir(), 'kinora-kernels-'));
  try {
    await writeKernelsPage(folder);
    const files = await serveFolders([folder]);
    const { browser } = await launchBrowser();
    try {
      const page = await browser.newPage();
      page.on('pageerror', (error) => process.stderr.write(`${error}\n`));
      let report: KernelReport | undefined;
      await page.exposeFunction('kinoraKernelReport', (next: KernelReport) => {
        report = next;
        onReport(next);
      });
      await page.goto(`${files.base}index.html`);
      await page.locator('body[data-ready="true"]').waitFor();
      const failure = await page.evaluate(
        (pageOptions) => window.kinoraKernels?.(pageOptions) ?? 'The page is not ready.',
        options,
      );
      if (failure !== null) throw new KinoraError('INTERNAL', failure);
      if (!report) throw new KinoraError('INTERNAL', 'The page has measured nothing.');
      return report;
    } finally {
      await browser.close();
      await files.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
