import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { Browser } from 'playwright';
import { KinoraError } from '../../contract';
import { blobFile } from '../../weights';
import { readGgufHeader } from '../../weights/formats/gguf';
import { withAppPage } from '../browser/app-page';
import { fromUser, root } from '../paths';
import { writeRandomLanguageModel } from './random-language-model';

const help = `npm run bench -- optimizer [options]

Loads a language model in headless Chromium as the prompt optimiser does, on the CPU, and prints its
load time, its speed and the memory of the tab. Without --model the file has random numbers in the shape
of Qwen3-0.6B Q8_0 and is made for it.

  --model FILE    a GGUF chat model of yours
  --threads N     default: half of the cores, at most 8
  --tokens N      tokens of the answer (default 60)
`;

const smallModel = 'lib/language-model/goldens/tiny-qwen3-Q8_0.gguf';

/** Measures a language model: loading, reading the prompt, writing the answer. */
export async function benchOptimizer(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      model: { type: 'string' },
      threads: { type: 'string' },
      tokens: { type: 'string', default: '60' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const threads = values.threads === undefined ? undefined : count('--threads', values.threads, 64);
  const tokens = count('--tokens', values.tokens, 500);
  const folder = await mkdtemp(path.join(tmpdir(), 'kinora-optimizer-'));
  try {
    const file = values.model ? fromUser(values.model) : await randomModel(folder);
    let memory = { peak: 0, stop: () => {} };
    const outcome = await withAppPage(
      '/headless/bench',
      async (page) => {
        memory = watchMemory(page.context().browser());
      },
      async (page) => {
        await page.locator('#model').setInputFiles(file);
        return page.evaluate(
          (options) => window.kinoraOptimizer?.(options) ?? 'The page is not ready.',
          { tokens, ...(threads === undefined ? {} : { threads }) },
        );
      },
    ).finally(() => memory.stop());
    if (typeof outcome === 'string') throw new KinoraError('INTERNAL', outcome);
    const { megabytes, loadSeconds, speed } = outcome;
    const rate = (n: number, milliseconds: number) =>
      `${((n * 1000) / milliseconds).toFixed(2)} tokens/s (${n} in ${(milliseconds / 1000).toFixed(1)} s)`;
    const rows = [
      ['file', `${megabytes.toFixed(0)} MB`],
      ['threads', String(speed.threads)],
      ['load', `${loadSeconds.toFixed(1)} s`],
      ['prompt', rate(speed.promptTokens, speed.promptMilliseconds)],
      ['answer', rate(speed.answerTokens, speed.answerMilliseconds)],
      ['memory of the tab', memory.peak ? `${(memory.peak / 1e9).toFixed(2)} GB` : 'unknown here'],
    ];
    const lines = rows.map(([name = '', value = '']) => `${name.padEnd(20)}${value}`);
    process.stdout.write(`${lines.join('\n')}\n`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function randomModel(folder: string): Promise<string> {
  const bytes = await readFile(path.join(root, smallModel));
  const header = await readGgufHeader(blobFile(smallModel, new Blob([new Uint8Array(bytes)])));
  const file = path.join(folder, 'random.gguf');
  await writeRandomLanguageModel(file, header);
  return file;
}

function count(name: string, text: string, most: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw new KinoraError('PARAMETER_INVALID', `${name} must be a whole number from 1 to ${most}.`);
}

/** Follows the memory of the largest renderer of a browser, where the system tells it (Linux). */
function watchMemory(browser: Browser | null): { peak: number; stop: () => void } {
  const watch = { peak: 0, stop: () => clearInterval(timer) };
  const session = browser?.newBrowserCDPSession();
  const timer = setInterval(async () => {
    try {
      const { processInfo } = (await (await session)?.send('SystemInfo.getProcessInfo')) ?? {
        processInfo: [],
      };
      for (const { type, id } of processInfo) {
        if (type !== 'renderer') continue;
        const status = await readFile(`/proc/${id}/status`, 'utf8');
        const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0);
        watch.peak = Math.max(watch.peak, kilobytes * 1024);
      }
    } catch {
      // A process that has just ended, or a system without /proc.
    }
  }, 500);
  return watch;
}
