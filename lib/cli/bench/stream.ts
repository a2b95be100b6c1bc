import { parseArgs } from 'node:util';
import { KinoraError } from '../../contract';
import { withAppPage } from '../browser/app-page';

const backends = ['wasm', 'webgpu'] as const;
const help = `npm run bench -- stream [--backend ${backends.join('|')}]

Runs the denoising loop in Chromium with all blocks on the device, and with all of them streamed from
OPFS: where one block's compute outlasts its read by far, and where it is a close call.
`;

/** Measures what streaming costs; the target is less than 15 %. */
export async function benchStream(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      backend: { type: 'string', default: 'wasm' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const backend = backends.find((name) => name === values.backend);
  if (!backend) {
    throw new KinoraError('PARAMETER_INVALID', `--backend must be ${backends.join(' or ')}.`);
  }
  const outcome = await withAppPage(
    '/headless/bench',
    async () => {},
    (page) =>
      page.evaluate(
        ([model, kind]) => window.kinoraStream?.(model, kind) ?? 'The page is not ready.',
        ['tiny', backend] as const,
      ),
  );
  if (typeof outcome === 'string') throw new KinoraError('INTERNAL', outcome);
  const milliseconds = (seconds: number) => `${(seconds * 1000).toFixed(1)} ms`;
  for (const each of outcome.cases) {
    const rows = [
      ['one block computes', milliseconds(each.blockSeconds)],
      ['one block is read', milliseconds(each.readSeconds)],
      ['loop, all resident', milliseconds(each.resident)],
      ['loop, all streamed', milliseconds(each.streamed)],
      ['streamed / resident', each.ratio.toFixed(3)],
    ];
    const lines = rows.map(([name = '', value = '']) => name.padEnd(24) + value.padStart(12));
    process.stdout.write(`${each.name}\n${lines.join('\n')}\n`);
  }
}
