import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Page } from 'playwright';
import { isBundled, KinoraError, parseParameters } from '../../contract';
import type { HeadlessEvent } from '../../contract/headless';
import { parameterRanges } from '../../contract/parameters';
import type { DeviceOptions, RunOptions, RunRequest } from '../../contract/run';
import type { HeldEnds } from '../../pipeline/held-end';
import {
  deviceOf,
  readArguments,
  readDevice,
  readNumber,
  readPrecision,
  readRunOptions,
  usageError,
} from '../arguments';
import { Command } from '../command';
import { openWithModel } from '../fetch-model';
import { addedIds, kinoraHome } from '../home';
import { readManifest } from '../inputs';
import { fromUser } from '../paths';
import { ProgressReport } from '../report';
import { openSession } from '../session';
import { comparePage, endsSentence } from './compare/html';
import type { Measures } from './compare/measures';
import { type Comparison, type SceneEnds, summaryOf, withClip } from './compare/record';
import { compareScenes, type Scene } from './compare/scenes';

type ComparedProfile = Pick<RunRequest, 'profile'> & { readonly options: RunOptions };

const profiles: Readonly<Record<string, ComparedProfile>> = {
  standard: { profile: 'standard', options: {} },
  cached: { profile: 'standard', options: { cache: true } },
  guidance: { profile: 'standard', options: { guidanceAdapter: true } },
  'guidance-cached': { profile: 'standard', options: { guidanceAdapter: true, cache: true } },
  'ultra-fast': { profile: 'ultra-fast', options: {} },
};

const help = `npm run compare -- DIR [options]

Makes videos of the same start images, prompts and seeds under several profiles of a model, measures them,
and writes DIR/index.html, with the videos side by side, and DIR/compare.json. The start images are drawn
here, ${compareScenes.length} of them. A folder that has a comparison is added to: to compare two few-step adapters, run it,
fetch the other one (npm run models -- download ID --adapter NAME), and run it again with --profiles ultra-fast.

  --model ID        mini (the default), wan2.2-ti2v-5b, or one that was added with \`npm run models\`
  --profiles LIST   of ${Object.keys(profiles).join(', ')} (default standard,ultra-fast)
  --images N        how many of the start images (default all)
  --steps N         denoising steps, where the profile leaves them open (default the model's)
  --duration N      seconds (default ${parameterRanges.duration.default})
  --loop            loops: then the end and the seam are measured too
  --adapter-strength X   as for generate, in profiles with an adapter
  --backend, --kernels, --memory, --precision, --hub, --yes, --accept-terms   as for generate
  --help            this text
`;

const optionTypes = {
  model: { type: 'string', default: 'mini' },
  profiles: { type: 'string', default: 'standard,ultra-fast' },
  images: { type: 'string' },
  steps: { type: 'string' },
  duration: { type: 'string' },
  loop: { type: 'boolean', default: false },
  'adapter-strength': { type: 'string' },
  backend: { type: 'string' },
  kernels: { type: 'string' },
  memory: { type: 'string' },
  precision: { type: 'string' },
  hub: { type: 'string' },
  yes: { type: 'boolean', default: false },
  'accept-terms': { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

process.exitCode = await new Command().run(async (command) => {
  const { values, positionals } = readArguments(process.argv.slice(2), optionTypes, refused);
  if (values.help) process.stdout.write(help);
  else await compare(command, values, positionals);
});

type Values = ReturnType<typeof readArguments<typeof optionTypes>>['values'];

async function compare(
  command: Command,
  values: Values,
  [folder, ...more]: readonly string[],
): Promise<void> {
  if (!folder || more.length > 0) throw refused('compare needs one folder.');
  const target = fromUser(folder);
  const chosenProfiles = values.profiles.split(',').map(profileNamed);
  const images = readNumber(values.images) ?? compareScenes.length;
  if (!(Number.isInteger(images) && images >= 1 && images <= compareScenes.length)) {
    throw refused(`--images must be from 1 to ${compareScenes.length}.`);
  }
  const home = kinoraHome();
  const listed = await readManifest(values.model, await addedIds(home));
  const { defaults, continuation } = listed ?? {};
  // A VAE of pictures knows one way only.
  const { latents = 0, encodes = 'clip' } = continuation ?? {};
  const holdsLatents = latents > 0 && encodes === 'clip';
  const steps = readNumber(values.steps) ?? null;
  const settings = {
    steps,
    seconds: readNumber(values.duration) ?? parameterRanges.duration.default,
    loop: values.loop,
  };
  const parametersOf = ({ prompt, seed }: Scene) => {
    const { loras: _, ...parameters } = parseParameters({
      ...defaults,
      prompt,
      seed,
      duration: settings.seconds,
      ...(settings.loop && { loop: true }),
      ...(steps !== null && { num_inference_steps: steps }),
    });
    return parameters;
  };
  // What is wrong is said before anything is opened.
  for (const scene of compareScenes) parametersOf(scene);

  const requestedDevice = readDevice(values);
  const { adapterStrength } = readRunOptions(values);
  const report = new ProgressReport(command.screen);
  const onProgress = (event: HeadlessEvent) => report.take(event);
  const precision = readPrecision(values.precision);
  const { model, hub, yes, 'accept-terms': acceptTerms } = values;
  const { page, software } =
    listed && isBundled(listed)
      ? await openSession(command, onProgress)
      : await openWithModel(command, home, { model, hub, precision, yes, acceptTerms }, onProgress);
  const measuring = await openMeasures(page.page);
  const device = deviceOf(requestedDevice, software);
  const probe = await page.call('probe');
  const { vendor, architecture, description } = probe.adapter;
  const named = device.backend === 'wasm' ? ['CPU'] : [vendor, architecture, description];
  let comparison: Comparison = {
    format: 1,
    model,
    device: `${named.filter(Boolean).join(' ')}, Chromium ${page.page.context().browser()?.version() ?? ''}`,
    settings,
    clips: [],
    ends: [],
    summary: {},
    ...(await earlierComparison(target, settings, model)),
  };
  await mkdir(path.join(target, 'clips'), { recursive: true });
  for (const scene of compareScenes.slice(0, images)) {
    const image = `clips/${scene.name}.png`;
    const still = await drawn(page.page, scene);
    await writeFile(path.join(target, image), still);
    for (const { name, profile, options } of chosenProfiles) {
      command.say(`\n${scene.name}, ${name}`);
      const usesAdapter = profile === 'ultra-fast' || options.guidanceAdapter;
      const request = {
        image: { name: `${scene.name}.png`, mimeType: 'image/png', buffer: still },
        loras: [],
        parameters: parametersOf(scene),
        model,
        profile,
        options: { ...options, ...(usesAdapter && { adapterStrength }) },
        device,
      };
      const result = await command.interruptible(
        () => page.generate(request),
        () => page.cancel(),
      );
      const column = columnOf(name, result.applied?.adapter);
      const video = `clips/${scene.name}-${column.replace(/[^\w.-]+/g, '-')}.mp4`;
      await page.save(result.videoFile, path.join(target, video));
      const files = [image, video].map((file) => path.join(target, file));
      const { total, denoise = 0, decode = 0 } = result.timings;
      const clips = withClip(comparison.clips, {
        scene: scene.name,
        prompt: scene.prompt,
        seed: scene.seed,
        image_sha256: createHash('sha256').update(still).digest('hex'),
        profile: name,
        column,
        applied: result.applied ?? null,
        seconds: { total, sampling: denoise, decode },
        image,
        video,
        measures: await measured(measuring, files, settings.loop),
      });
      const { ends } = comparison;
      const measuresEnds = holdsLatents && !ends.some((each) => each.scene === scene.name);
      const measuredEnds = measuresEnds
        ? [await heldEnds(measuring, scene.name, model, device)]
        : [];
      comparison = {
        ...comparison,
        clips,
        ends: [...ends, ...measuredEnds],
        summary: summaryOf(clips),
      };
      const json = `${JSON.stringify(comparison, null, 2)}\n`;
      await writeFile(path.join(target, 'compare.json'), json);
      await writeFile(path.join(target, 'index.html'), comparePage(comparison));
    }
  }
  await page.call('clearHistory');
  if (comparison.ends.length > 0) command.say(`\n${endsSentence(comparison.ends)}`);
  command.say(`\n${path.join(path.relative('', target), 'index.html')}`);
}

function profileNamed(name: string): ComparedProfile & { readonly name: string } {
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (profile) return { name, ...profile };
  const sentence = `--profiles must name some of ${Object.keys(profiles).join(', ')}, not "${name}".`;
  throw new KinoraError('PARAMETER_INVALID', sentence);
}

/** What a column is called: the profile, and the adapter that ran. */
function columnOf(
  name: string,
  adapter: { readonly name: string; readonly strength?: number | undefined } | null | undefined,
): string {
  if (!adapter) return name;
  return `${name}, ${adapter.name}${adapter.strength === undefined ? '' : ` at ${adapter.strength}`}`;
}

/** What a folder has already. @throws KinoraError `PARAMETER_INVALID` where it was made otherwise */
async function earlierComparison(
  folder: string,
  settings: Comparison['settings'],
  model: string,
): Promise<Pick<Comparison, 'clips' | 'ends'> | null> {
  const text = await readFile(path.join(folder, 'compare.json'), 'utf8').catch(() => null);
  if (text === null) return null;
  const earlier = JSON.parse(text) as Comparison;
  const same = JSON.stringify([earlier.format, earlier.model, earlier.settings]);
  const { clips, ends = [] }: Partial<Comparison> = earlier;
  if (clips && same === JSON.stringify([1, model, settings])) return { clips, ends };
  const sentence = `${folder} has a comparison of another model, or with other settings.`;
  throw new KinoraError('PARAMETER_INVALID', sentence, { remedy: 'Name another folder.' });
}

/** Another page of the same browser; the page of a browser that forgets everything has its context to itself. */
function newPage(beside: Page): Promise<Page> {
  const context = beside.context();
  return context.browser()?.newPage() ?? context.newPage();
}

/** Draws a start image as a PNG. */
async function drawn(beside: Page, { svg }: Scene): Promise<Buffer> {
  const page = await newPage(beside);
  try {
    await page.setViewportSize({ width: 1280, height: 720 });
    await page.setContent(`<style>body { margin: 0 } svg { display: block }</style>${svg}`);
    return await page.screenshot({ type: 'png' });
  } finally {
    await page.close();
  }
}

/** Opens the page that measures, beside the one that makes videos. */
async function openMeasures(beside: Page): Promise<Page> {
  const page = await newPage(beside);
  await page.goto(new URL('/compare', beside.url()).href);
  await page.locator('main[data-ready="true"]').waitFor({ state: 'attached' });
  return page;
}

async function measured(page: Page, [image, video]: readonly string[], loop: boolean) {
  await page.locator('#image').setInputFiles(image ?? []);
  await page.locator('#video').setInputFiles(video ?? []);
  const measures = await page.evaluate((isLoop) => window.kinoraMeasure?.(isLoop), loop);
  return measures as Measures;
}

/** Measures the ends on the video that was measured last. */
async function heldEnds(
  page: Page,
  scene: string,
  model: string,
  device: DeviceOptions,
): Promise<SceneEnds> {
  const ends = await page.evaluate(([id, on]) => window.kinoraHeldEnds?.(id, on), [
    model,
    device,
  ] as const);
  return { scene, ...(ends as HeldEnds) };
}

function refused(sentence: string): KinoraError {
  return usageError('compare', sentence);
}
