import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { version } from '../../../package.json';
import { KinoraError } from '../../contract';
import type { GpuReportRequest } from '../../engine/gpu-report';
import { measurementNames, type SpeedReport } from '../../models/wan/speed';
import { reportText } from '../../models/wan/speed/text';
import { oneOf, refuseMore, runCommand, usageError } from '../arguments';
import { fromUser, root } from '../paths';
import { withBarePage } from './bare-page';

const help = `npm run gpu-report -- [options]

What a graphics card can tell of Kinora, into two files to send in: self-test, the peak of its arithmetic, check and
tuning of our kernels in each mode, their speed beside ONNX Runtime's on the same operands, a block of the 5B, decoded
frames and a short video with random weights, and what that forecasts for a video of 5 seconds. A card takes three
minutes. Where the CPU computes or emulates a graphics card, what would take it long is left out unless it is named.

  --only NAME       one measurement: ${measurementNames.slice(0, 7).join(', ')},
                    ${measurementNames.slice(7).join(', ')}
  --all             everything, with all variants of our kernels and a whole video of 5 seconds; slower cards take an hour
  --backend NAME    webgpu (default), or wasm: the CPU, by ONNX Runtime
  --out DIR         where gpu-report.json and gpu-report.md go (default: out)
  --json            also prints the figures as JSON, and nothing else
  --tokens M        tokens of the block, and then of the video (default 4096; 64 where the CPU computes)
  --variants N      variants of each kernel, the best guesses first (default 1; with --all all, 2 on a CPU emulation)
  --rounds N        measurements of each (default 2; with --all 5, 2 on a CPU emulation)

The files name the graphics card, browser and system; nothing is sent. They are written whenever something is known, so
that they hold it when the report is interrupted.
`;

const optionTypes = {
  only: { type: 'string' },
  all: { type: 'boolean', default: false },
  backend: { type: 'string', default: 'webgpu' },
  out: { type: 'string', default: 'out' },
  json: { type: 'boolean', default: false },
  tokens: { type: 'string' },
  variants: { type: 'string' },
  rounds: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

const refused = (sentence: string) => usageError('gpu-report', sentence);

process.exitCode = await runCommand('gpu-report', help, optionTypes, async (args) => {
  const { values, positionals } = args;
  refuseMore('gpu-report', positionals);
  const only = oneOf('--only', measurementNames, values.only);
  const { tokens, variants, rounds } = values;
  const sizes = Object.entries({ tokens, variants, rounds }).flatMap(([name, text]) => {
    if (text === undefined) return [];
    if (!/^[1-9]\d*$/.test(text)) throw refused(`--${name} must be a whole number of at least 1.`);
    return [[name, Number(text)] as const];
  });
  if (Number(tokens ?? 2) % 2 !== 0) throw refused('--tokens must be even.');
  const request: GpuReportRequest = {
    ...Object.fromEntries(sizes),
    all: values.all,
    ...(only !== undefined && { only }),
    backend: oneOf('--backend', ['webgpu', 'wasm'] as const, values.backend),
  };
  const folder = fromUser(values.out);
  const files = ['json', 'md'].map((type) => path.join(folder, `gpu-report.${type}`));
  await mkdir(folder, { recursive: true });
  const system = `${os.type()} ${os.release()} ${os.arch()}, Node ${process.versions.node}`;
  const kinora = [version, commit()].filter(Boolean).join(', commit ');
  const print = (text: string) => values.json || process.stdout.write(text);
  let told = 0;
  const documents: string[] = [];
  const problems = new Set<string>();
  const onReport = (report: SpeedReport) => {
    const document = `${JSON.stringify({ kinora, system, ...report }, null, 2)}\n`;
    documents.splice(0, 1, document);
    // At once: what follows may take the machine down.
    const texts = [document, reportText(report, `${kinora}; ${system}`)];
    for (const [i, file] of files.entries()) writeFileSync(file, texts[i] ?? '');
    for (const { name, seconds, problem } of report.outcomes.slice(told)) {
      if (problem !== null) problems.add(name);
      print(`${name}: ${problem ?? `${seconds.toFixed(0)} s`}\n`);
    }
    told = report.outcomes.length;
  };
  const failure = await withBarePage(
    'gpu-report',
    (page) => page.exposeFunction('kinoraGpuReportSoFar', onReport),
    (page) =>
      page.evaluate(
        (asked) => window.kinoraGpuReport?.(asked) ?? 'The page is not ready.',
        request,
      ),
  );
  if (failure !== null) throw new KinoraError('INTERNAL', failure);
  process.stdout.write(values.json ? documents.join('') : `${files.join('\n')}\n`);
  return problems.size > 0 ? 1 : 0;
});

/** The commit of the checkout; empty where it is none. */
function commit(): string {
  const { stdout } = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root });
  return stdout?.toString().trim() ?? '';
}
