import { parseArgs } from 'node:util';
import {
  type Backend,
  demonstrationModel,
  type GenerationResult,
  type ProfileName,
  type ProgressEvent,
  parseParameters,
} from '../../contract';
import { samplePrompt } from '../../contract/request';
import { startApp } from '../app-server';
import { readBackend } from '../arguments';
import { HeadlessPage } from '../browser/headless-page';
import { launchBrowser } from '../browser/launch';
import { ensureBuild } from '../build';
import { readImage, readManifest } from '../inputs';

const help = `npm run bench -- estimate [options]

Makes a video three times: in a new browser; in a new tab, with the rates that the first
run has measured; and in the same tab, where kernels are compiled already. Prints what was said of the run
at each tenth of the time that it then took, and the seconds of each phase.

  --model ID              default: ${demonstrationModel}
  --backend webgpu|wasm   default: webgpu, which is emulated where there is no GPU
  --steps N               default: the model's own
  --fast                  the profile ultra-fast
`;

const runs = ['first run', 'new tab, remembered rates', 'same tab, remembered rates'] as const;

type Estimate = Extract<ProgressEvent, { type: 'estimate' }>;

/** An estimate and when it was said, in seconds from the start of the run. */
interface Said extends Estimate {
  readonly at: number;
}

/** Compares the estimates of a run with the time that it takes. */
export async function benchEstimate(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      model: { type: 'string', default: demonstrationModel },
      backend: { type: 'string', default: 'webgpu' },
      steps: { type: 'string' },
      fast: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const backend = readBackend(values.backend) ?? 'webgpu';
  const profile = values.fast ? 'ultra-fast' : 'standard';
  const { model, steps } = values;
  const manifest = await readManifest(model, []);
  const parameters = parseParameters({
    prompt: samplePrompt,
    ...manifest?.defaults,
    ...(steps !== undefined && { num_inference_steps: Number(steps) }),
    seed: 1,
  });
  await ensureBuild((line) => process.stderr.write(`${line}\n`));
  const app = await startApp();
  try {
    const { browser } = await launchBrowser();
    try {
      const context = await browser.newContext();
      let said: Said[] = [];
      let begin = 0;
      const open = () =>
        HeadlessPage.open(context, app.origin, (event) => {
          if (event.type !== 'estimate') return;
          said.push({ ...event, at: (performance.now() - begin) / 1000 });
        });
      let page = await open();
      for (const [index, name] of runs.entries()) {
        if (index === 1) {
          await page.page.close();
          page = await open();
        }
        said = [];
        begin = performance.now();
        const { timings } = await generate(page, { model, backend, profile, parameters });
        print(name, said, (performance.now() - begin) / 1000);
        const seconds = Object.entries(timings).map(
          ([phase, time]) => `${phase} ${time.toFixed(1)} s`,
        );
        process.stdout.write(`${seconds.join(', ')}\n`);
      }
    } finally {
      await browser.close();
    }
  } finally {
    await app.stop();
  }
}

async function generate(
  page: HeadlessPage,
  run: {
    readonly model: string;
    readonly backend: Backend;
    readonly profile: ProfileName;
    readonly parameters: ReturnType<typeof parseParameters>;
  },
): Promise<GenerationResult> {
  const image = await readImage(undefined, new AbortController().signal);
  const { loras: _, ...parameters } = run.parameters;
  return page.generate({ ...run, parameters, image, loras: [] });
}

function print(name: string, said: readonly Said[], total: number): void {
  process.stdout.write(`\n${name}: ${total.toFixed(1)} s\n`);
  process.stdout.write('time   share said   left said   left   reason\n');
  let worst = 0;
  for (let tenth = 1; tenth < 10; tenth++) {
    const at = (tenth / 10) * total;
    const latest = said.findLast((estimate) => estimate.at <= at);
    const share = latest?.share ?? 0;
    worst = Math.max(worst, Math.abs(share - tenth / 10));
    const left = latest?.secondsRemaining;
    const cells = [
      `${tenth * 10} %`.padStart(4),
      `${(100 * share).toFixed(0)} %`.padStart(12),
      (left == null ? '–' : `${left.toFixed(1)} s`).padStart(11),
      `${(total - at).toFixed(1)} s`.padStart(8),
      ` ${latest?.reason ?? ''}`,
    ];
    process.stdout.write(`${cells.join(' ').trimEnd()}\n`);
  }
  process.stdout.write(`farthest from the truth: ${(100 * worst).toFixed(0)} points\n`);
}
