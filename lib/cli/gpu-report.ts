import { mkdir, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { toKinoraError } from '../contract';
import { readArguments, usageError } from './arguments';
import { reportMarkdown, reportSteps, runSteps, type StepResult } from './gpu-report-steps';
import { fromUser } from './paths';

const help = `npm run gpu-report -- [--out DIR]

Everything that a graphics card can tell of Kinora in one run, into two files to send in: self-test, check and tuning
of our kernels, their speed beside ONNX Runtime's, parity of the tiny model in every mode, and one block of the 5B at
the full length of a clip. A card takes minutes; where the CPU emulates one, the last part is left out.

  --out DIR   where gpu-report.json and gpu-report.md go (default: out)

The files name the graphics card, browser and system; nothing is sent.
`;

const optionTypes = {
  out: { type: 'string', default: 'out' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

process.exitCode = await main();

async function main(): Promise<number> {
  try {
    const refuse = (sentence: string) => usageError('gpu-report', sentence);
    const { values } = readArguments(process.argv.slice(2), optionTypes, refuse);
    if (values.help) {
      process.stdout.write(help);
      return 0;
    }
    const folder = fromUser(values.out);
    const files = ['json', 'md'].map((type) => path.join(folder, `gpu-report.${type}`));
    await mkdir(folder, { recursive: true });
    const results: StepResult[] = [];
    const system = `${os.type()} ${os.release()} ${os.arch()}, Node ${process.versions.node}`;
    const date = new Date().toISOString();
    // Written after each step: a step may take the machine down.
    await runSteps(reportSteps, async (result) => {
      results.push(result);
      const { name, seconds, outcome } = result;
      process.stdout.write(`${name}: ${outcome} after ${seconds.toFixed(0)} s\n`);
      const report = { date, system, steps: results };
      const texts = [`${JSON.stringify(report, null, 2)}\n`, reportMarkdown(report)];
      await Promise.all(files.map((file, i) => writeFile(file, texts[i] ?? '')));
    });
    process.stdout.write(`${files.join('\n')}\n`);
    return results.every(({ outcome }) => outcome !== 'failed') ? 0 : 1;
  } catch (thrown) {
    const error = toKinoraError(thrown);
    process.stderr.write(`${error.code}: ${error.message}\n${error.remedy}\n`);
    return 1;
  }
}
