import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { KinoraError, parseManifest, type Size, sizes, toKinoraError } from '../../lib/contract';
import { readModelConfig } from '../../lib/wan/config';
import { type MemoryPlan, planMemory } from '../../lib/wan/plan';
import { root } from '../browser/stamp';
import { diskFolder } from './disk-folder';

const help = `npm run plan -- MODEL [--size ${sizes.join('|')}] [--precision f32|int8] [--frames N]

Prints the memory that one clip of the model takes on the GPU, stage by stage, without running it.
MODEL is an id of public/models, such as wan2.2-ti2v-5b.
`;

process.exitCode = await main();

async function main(): Promise<number> {
  try {
    const { values, positionals } = parse(process.argv.slice(2));
    if (values.help) {
      process.stdout.write(help);
      return 0;
    }
    const id = positionals[0] ?? 'wan2.2-ti2v-5b';
    const size = sizes.find((name) => name === values.size);
    if (!size) {
      throw new KinoraError('PARAMETER_INVALID', `--size must be one of ${sizes.join(', ')}.`);
    }
    const plan = await planOf(id, size, values.precision, values.frames);
    process.stdout.write(format(id, plan));
    return 0;
  } catch (thrown) {
    const error = toKinoraError(thrown);
    process.stderr.write(`${error.code}: ${error.message}\n${error.remedy}\n`);
    return 1;
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        size: { type: 'string', default: sizes[0] },
        precision: { type: 'string' },
        frames: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (cause) {
    throw new KinoraError('PARAMETER_INVALID', (cause as Error).message, { cause });
  }
}

async function planOf(
  id: string,
  size: Size,
  precision: string | undefined,
  frames: string | undefined,
): Promise<MemoryPlan> {
  if (precision !== undefined && precision !== 'f32' && precision !== 'int8') {
    throw new KinoraError('PARAMETER_INVALID', '--precision must be f32 or int8.');
  }
  const count = frames === undefined ? undefined : Number(frames);
  if (count !== undefined && !(Number.isInteger(count) && count > 0 && count % 4 === 1)) {
    throw new KinoraError('PARAMETER_INVALID', '--frames must be 4n+1, such as 121.');
  }
  const models = path.join(root, 'public/models');
  const file = path.join(models, `${path.basename(id)}.json`);
  const text = await readFile(file, 'utf8').catch((cause) => {
    throw new KinoraError('MODEL_UNKNOWN', `There is no model "${id}".`, { cause });
  });
  const manifest = parseManifest(JSON.parse(text));
  const config = await readModelConfig(diskFolder(path.join(models, manifest.base)));
  return planMemory(config, manifest, {
    size,
    ...(precision ? { precision } : {}),
    ...(count ? { frames: count } : {}),
  });
}

function format(id: string, plan: MemoryPlan): string {
  const columns = ['weights', 'activations', 'caches', 'runtime', 'peak'] as const;
  const [unit, bytesPerUnit] =
    plan.peak < 2 ** 30 ? (['MiB', 2 ** 20] as const) : (['GiB', 2 ** 30] as const);
  const cell = (bytes: number) => (bytes / bytesPerUnit).toFixed(2).padStart(12);
  const { width, height, frames } = plan.native;
  const lines = [
    `${id} at ${width}×${height}×${frames}: ${plan.tokens} tokens in chunks of ${plan.chunkTokens}`,
    `${unit.padEnd(10)}${columns.map((name) => name.padStart(12)).join('')}`,
    ...plan.stages.map(
      (stage) => stage.stage.padEnd(10) + columns.map((name) => cell(stage[name])).join(''),
    ),
    `Peak: ${cell(plan.peak).trim()} ${unit}. Each stage frees its memory before the next one.`,
  ];
  return `${lines.join('\n')}\n`;
}
