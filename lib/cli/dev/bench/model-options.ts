import { parseArgs } from 'node:util';
import { KinoraError, kernelSettings, type Precision, precisions } from '../../../contract';
import type { BenchmarkOptions } from '../../../pipeline/benchmark';
import { oneOf, readPrecision } from '../../arguments';

export const modelHelp = `npm run bench -- model --synthetic MODEL [options]

Times one transformer block, one text-encoder layer and one level of the VAE's decoder with random
weights of the model's real widths, and prints the memory plan. MODEL is an id of public/models.

  --layers N        transformer blocks to run, each with weights of its own (default 1)
  --tokens M        tokens of the clip (default 27280, 1280×704×121; 128 on the CPU). A clip of other frames than
                    1280×704 makes every part small: 64 is a matter of minutes where the CPU emulates a GPU
  --text-tokens T   tokens of the prompt (default as many as of the clip, at most 512)
  --latent HxW      frames that enter the VAE's level (default: the clip's; 44x80 is 1280×704)
  --level N         level of the VAE's decoder (default 0)
  --precision P     ${precisions.join(', ')} (default the model's own)
  --passes N        passes to take the median of (default 3)
  --chunk N         most tokens in a chunk (default 4096)
  --backend NAME    wasm: ONNX Runtime's CPU provider in Node (default); webgpu: headless Chromium
  --kernels NAME    with webgpu: ${kernelSettings.join(', ')} (default exact)
  --json FILE       also writes all figures as JSON; - for standard output
`;

const optionTypes = {
  synthetic: { type: 'string' },
  layers: { type: 'string', default: '1' },
  tokens: { type: 'string' },
  'text-tokens': { type: 'string' },
  latent: { type: 'string' },
  level: { type: 'string', default: '0' },
  precision: { type: 'string' },
  passes: { type: 'string', default: '3' },
  chunk: { type: 'string', default: '4096' },
  backend: { type: 'string', default: 'wasm' },
  kernels: { type: 'string' },
  json: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

const defaultTokens = { webgpu: '27280', wasm: '128' } as const;

export interface ModelBenchOptions {
  readonly model: string;
  readonly backend: 'wasm' | 'webgpu';
  /** Undefined: the model's own. */
  readonly precision: Precision | undefined;
  readonly stages: Omit<BenchmarkOptions, 'precision'>;
  readonly json: string | undefined;
}

/**
 * Reads the command line of `bench model`.
 *
 * @throws KinoraError `PARAMETER_INVALID` naming the option
 */
export function parseModelOptions(args: readonly string[]): ModelBenchOptions | 'help' {
  const { values } = parse(args);
  if (values.help) return 'help';
  const { synthetic: model, backend } = values;
  if (!model) throw invalid('--synthetic must name a model, such as wan2.2-ti2v-5b.');
  if (backend !== 'wasm' && backend !== 'webgpu')
    throw invalid('--backend must be wasm or webgpu.');
  const setting = values.kernels ?? (backend === 'webgpu' ? 'exact' : 'runtime');
  const kernels = oneOf('--kernels', kernelSettings, setting);
  if (kernels !== 'runtime' && backend === 'wasm') {
    throw invalid(`--kernels ${kernels} needs --backend webgpu.`);
  }
  const precision = readPrecision(values.precision);
  const tokens = whole('--tokens', values.tokens ?? defaultTokens[backend], 2);
  if (tokens % 2 !== 0) throw invalid('--tokens must be even: a clip has two frames or more.');
  const most = 512;
  const text = values['text-tokens'] ?? String(Math.min(most, tokens));
  const textTokens = whole('--text-tokens', text, 1);
  if (textTokens > most) throw invalid(`--text-tokens must be at most ${most}.`);
  return {
    model,
    backend,
    precision,
    json: values.json,
    stages: {
      layers: whole('--layers', values.layers, 1),
      tokens,
      textTokens,
      ...(values.latent !== undefined && { latent: size(values.latent) }),
      level: whole('--level', values.level, 0),
      passes: whole('--passes', values.passes, 1),
      maxChunkTokens: whole('--chunk', values.chunk, 1),
      kernels,
    },
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: optionTypes });
  } catch (cause) {
    throw new KinoraError('PARAMETER_INVALID', (cause as Error).message, { cause });
  }
}

function size(text: string): { height: number; width: number } {
  const [, height, width] = /^(\d+)x(\d+)$/.exec(text) ?? [];
  return { height: whole('--latent', height, 1), width: whole('--latent', width, 1) };
}

function whole(option: string, text: string | undefined, least: number): number {
  const value = /^\d+$/.test(text ?? '') ? Number(text) : Number.NaN;
  if (value >= least) return value;
  throw invalid(`${option} must be a whole number of at least ${least}, not "${text ?? ''}".`);
}

function invalid(sentence: string): KinoraError {
  return new KinoraError('PARAMETER_INVALID', sentence, {
    remedy: 'Run `npm run bench -- model --help` for the options.',
  });
}
