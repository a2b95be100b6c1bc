import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import * as ort from 'onnxruntime-web';
import { KinoraError, kernelSettings } from '../../contract';
import { createBackend, type Runtime } from '../../gpu';
import { type ParityLine, runParity } from '../../parity';
import { type Arguments, oneOf, runCommand } from '../arguments';
import { diskFolder } from '../disk-folder';
import { serveFolders } from '../file-server';
import { fromUser, root } from '../paths';
import { withBarePage } from './bare-page';
import type { ParityDevice } from './pages/parity';

const help = `npm run parity -- [DIR] [--backend wasm|webgpu] [--kernels SETTING] [--tolerance X]

Runs every stage that DIR has reference tensors for and compares (default: the bundled goldens of the
5B). DIR is laid out like a folder of lib/models/wan/goldens or of lib/finishing/goldens, like
lib/safety/goldens or like lib/safety/goldens/nsfwjs.

  --backend wasm     the CPU in Node (default)
  --backend webgpu   the app in headless Chromium
  --kernels SETTING  ${kernelSettings.join(', ')}; with wasm exact or runtime (default: exact
                     with wasm, runtime with webgpu: ONNX Runtime's kernels)
  --json             prints one JSON document instead of a table
  --tolerance X      instead of those of lib/parity/stages.ts; not for equality and weights in 8 bits
`;

const stageWidth = 44;

type Options = Awaited<ReturnType<typeof readOptions>>;

const optionTypes = {
  backend: { type: 'string', default: 'wasm' },
  kernels: { type: 'string' },
  tolerance: { type: 'string' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

process.exitCode = await runCommand('parity', help, optionTypes, async (args) => {
  const options = await readOptions(args);
  const lines: ParityLine[] = [];
  const onLine = (line: ParityLine) => {
    lines.push(line);
    print(format(line));
  };
  const { json } = args.values;
  const print = (line: string) => json || process.stdout.write(`${line}\n`);
  print(header());
  const start = performance.now();
  const device = await (options.backend === 'wasm'
    ? inNode(options, onLine)
    : inChromium(options, onLine));
  const failed = lines.filter((line) => !line.ok).length;
  if (json) {
    const seconds = (performance.now() - start) / 1000;
    const { backend, kernels } = options;
    const document = { backend, kernels, ...device, seconds, failed, lines };
    process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
  }
  const output = json ? process.stderr : process.stdout;
  output.write(`${lines.length - failed} passed, ${failed} failed\n`);
  return failed > 0 || lines.length === 0 ? 1 : 0;
});

async function readOptions(args: Arguments<typeof optionTypes>) {
  const { values, positionals } = args;
  const { backend } = values;
  if (backend !== 'wasm' && backend !== 'webgpu') {
    throw new KinoraError('PARAMETER_INVALID', '--backend must be wasm or webgpu.');
  }
  const usual = backend === 'wasm' ? 'exact' : 'runtime';
  const kernels = oneOf('--kernels', kernelSettings, values.kernels ?? usual);
  if (backend === 'wasm' && kernels !== usual && kernels !== 'runtime') {
    throw new KinoraError('PARAMETER_INVALID', `--kernels ${kernels} needs --backend webgpu.`);
  }
  const tolerance = values.tolerance === undefined ? null : Number(values.tolerance);
  if (tolerance !== null && !(tolerance > 0)) {
    throw new KinoraError('PARAMETER_INVALID', '--tolerance must be a number above 0.');
  }
  if (positionals.length > 1) {
    const sentence = `There is one folder to check, not also ${positionals[1]}.`;
    throw new KinoraError('PARAMETER_INVALID', sentence);
  }
  const folder = fromUser(
    positionals[0] ?? path.join(root, 'lib/models/wan/goldens/tiny-wan22-ti2v'),
  );
  // A file that cannot be read counts as absent.
  const facts = await stat(path.join(folder, 'golden.json')).catch(() => null);
  if (!facts) {
    throw new KinoraError('FILE_UNREADABLE', `${folder} has no golden.json.`, {
      remedy: 'Name a folder laid out like one of lib/models/wan/goldens, or lib/safety/goldens.',
    });
  }
  return { folder, backend, kernels, tolerance };
}

async function limitsOf({ folder, tolerance }: Options) {
  // Without the folder there are none.
  const names = await readdir(path.join(folder, 'loras')).catch(() => []);
  const loraFiles = names.filter((name) => name.endsWith('.safetensors')).sort();
  return { loraFiles, ...(tolerance === null ? {} : { tolerance }) };
}

async function inNode(options: Options, onLine: (line: ParityLine) => void): Promise<null> {
  ort.env.logLevel = 'error';
  // The package's entry for Node has the same surface as the browser's.
  const backend = await createBackend('wasm', { runtime: ort as unknown as Runtime });
  backend.runtimeOnly = options.kernels === 'runtime';
  await runParity(diskFolder(options.folder), backend, {
    ...(await limitsOf(options)),
    quickChecker: diskFolder(path.join(root, 'public/nsfwjs')),
    onLine,
  });
  await backend.dispose();
  return null;
}

async function inChromium(
  options: Options,
  onLine: (line: ParityLine) => void,
): Promise<ParityDevice> {
  const files = await serveFolders([options.folder]);
  const request = { ...(await limitsOf(options)), kernels: options.kernels };
  try {
    const device = await withBarePage(
      'parity',
      // NaN has no JSON, but Playwright's own transport carries it.
      (page) => page.exposeFunction('kinoraParityLine', onLine),
      (page) =>
        page.evaluate(([base, of]) => window.kinoraParity?.(base, of) ?? 'The page is not ready.', [
          files.base,
          request,
        ] as const),
    );
    if (typeof device === 'string') throw new KinoraError('INTERNAL', device);
    return device;
  } finally {
    await files.close();
  }
}

function header(): string {
  return `${'stage'.padEnd(stageWidth)} rel-RMS    max-abs    tolerance`;
}

function format(line: ParityLine): string {
  const number = (value: number) => value.toExponential(2).padEnd(10);
  const verdict = line.ok ? 'ok' : 'FAIL';
  const numbers = [line.relativeRms, line.maxAbsolute, line.tolerance].map(number).join(' ');
  const note = line.note ? `  ${line.note}` : '';
  return `${line.stage.padEnd(stageWidth)} ${numbers} ${verdict}${note}`;
}
