import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { version } from '../../../package.json';
import { runCommand, usageError } from '../arguments';
import { fromUser, root } from '../paths';
import { reportMarkdown, reportSteps, runSteps, type StepResult } from './gpu-report-steps';

const help = `npm run gpu-report -- [options]

What a graphics card can tell of Kinora, into two files to send in: self-test, the peak of its arithmetic, check and
tuning of our kernels in each mode, their speed beside ONNX Runtime's, a block of 4,096 tokens of the 5B and a decoded
frame, and what that forecasts for a video of 5 seconds, with the error of the same forecast for the block; then a layer
of each part of the 5B at the full length of a clip. That takes three minutes at most: a step that takes longer is
ended, and what it has measured counts. Where the CPU emulates a graphics card there is no tuning, block, decoded frame
and layer, and the report says that it is emulated.

  --all          everything: all variants of our kernels, parity of the tiny model, and the 5B's blocks in every mode;
                 slower cards take an hour
  --out DIR      where gpu-report.json and gpu-report.md go (default: out)
  --layers N     blocks of the 5B (default 1; 2 with --all)
  --tokens M     tokens of its clip (default 27280, 1280×704×121); 64 is enough where the CPU emulates a graphics card
  --variants N   variants of each kernel to measure, the best guesses first (default 1; with --all all, 2 on a CPU emulation)
  --rounds N     measurements of each kernel (default 2; with --all 5, 2 on a CPU emulation)

The files name the graphics card, browser and system; nothing is sent. They are written after each step, so that they
hold what is known when the report is interrupted.
`;

const optionTypes = {
  out: { type: 'string', default: 'out' },
  all: { type: 'boolean', default: false },
  layers: { type: 'string' },
  tokens: { type: 'string' },
  variants: { type: 'string' },
  rounds: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

const refused = (sentence: string) => usageError('gpu-report', sentence);

process.exitCode = await runCommand('gpu-report', help, optionTypes, async ({ values }) => {
  const { out, all, help: _, ...sizes } = values;
  for (const [name, text] of Object.entries(sizes)) {
    if (!/^[1-9]\d*$/.test(text)) throw refused(`--${name} must be a whole number of at least 1.`);
  }
  if (Number(sizes.tokens ?? 2) % 2 !== 0) throw refused('--tokens must be even.');
  const folder = fromUser(out);
  const files = ['json', 'md'].map((type) => path.join(folder, `gpu-report.${type}`));
  await mkdir(folder, { recursive: true });
  const results: StepResult[] = [];
  const system = `${os.type()} ${os.release()} ${os.arch()}, Node ${process.versions.node}`;
  const date = new Date().toISOString();
  const kinora = [version, commit()].filter(Boolean).join(', commit ');
  const steps = reportSteps({ all, ...sizes });
  // Written after each step: a step may take the machine down.
  await runSteps(steps, async (result) => {
    results.push(result);
    const { name, seconds, outcome } = result;
    const took = outcome === 'left out' ? '' : ` after ${seconds.toFixed(0)} s`;
    process.stdout.write(`${results.length} of ${steps.length}: ${name}: ${outcome}${took}\n`);
    const report = { date, kinora, system, steps: results };
    const texts = [`${JSON.stringify(report, null, 2)}\n`, reportMarkdown(report)];
    await Promise.all(files.map((file, i) => writeFile(file, texts[i] ?? '')));
  });
  process.stdout.write(`${files.join('\n')}\n`);
  return results.every(({ outcome }) => outcome !== 'failed') ? 0 : 1;
});

/** Of the checkout; nothing where it is none. */
function commit(): string {
  const { stdout } = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root });
  return stdout?.toString().trim() ?? '';
}
