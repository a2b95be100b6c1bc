import { openAsBlob } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Backend,
  frameCount,
  framesPerSecond,
  KinoraError,
  resolveSeed,
  toKinoraError,
} from '../../lib/contract';
import { inspectVideo } from '../../lib/video/inspect';
import { HeadlessPage } from '../browser/headless';
import { launchBrowser } from '../browser/launch';
import { ensureBuild, startServer } from '../browser/server';
import { checkLora, readImage, readManifest } from './inputs';
import { type GenerateOptions, helpText, parseOptions } from './options';
import { checkWritable, fromUser, makeFolders } from './places';
import { ProgressReport, summary } from './report';

const report = new ProgressReport(process.stdout);
const abort = new AbortController();
/** What to take down at the end, the last first. */
const cleanups: (() => Promise<unknown>)[] = [];

process.exitCode = await main();

async function main(): Promise<number> {
  let abortedAt = 0;
  const onSignal = () => {
    // The terminal and npm may each pass on one Ctrl-C; only a later one means impatience.
    if (abort.signal.aborted && performance.now() - abortedAt > 1000) process.exit(130);
    if (abort.signal.aborted) return;
    abortedAt = performance.now();
    abort.abort();
    report.line('Stopping …');
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
  try {
    const options = parseOptions(process.argv.slice(2));
    if (options === 'help') process.stdout.write(helpText);
    else await generate(options);
    return 0;
  } catch (thrown) {
    report.end();
    const error = abort.signal.aborted ? new KinoraError('CANCELLED') : toKinoraError(thrown);
    process.stderr.write(`${error.code}: ${error.message}\n${error.remedy}\n`);
    return error.code === 'CANCELLED' ? 130 : 1;
  } finally {
    for (const cleanup of cleanups.reverse()) await cleanup().catch(() => undefined);
  }
}

async function generate(options: GenerateOptions): Promise<void> {
  // Everything that can be wrong is looked at first: nothing is built or started for a bad request.
  const manifest = await readManifest(options.model);
  const { loras: named, ...asked } = options.parameters;
  const loras = named.map((lora) => ({ ...lora, path: fromUser(lora.path) }));
  for (const { path: file } of loras) await checkLora(file);
  const image = await readImage(options.image, abort.signal);
  const out = options.out === undefined ? undefined : fromUser(options.out);
  await checkWritable(out ?? path.resolve('out', 'video.mp4'));
  const parameters = {
    ...asked,
    ...(options.stepsGiven ? {} : manifest.defaults),
    seed: resolveSeed(asked.seed),
  };

  await ensureBuild((line) => report.line(line), abort.signal);
  const server = await startServer();
  cleanups.push(server.stop);
  const { browser, software } = await launchBrowser(server.origin);
  cleanups.push(() => browser.close());
  abort.signal.throwIfAborted();
  const backend = options.backend ?? (software ? 'wasm' : 'webgpu');
  if (software) report.line(withoutGpu(backend, options.backend !== undefined));

  const page = await HeadlessPage.open(browser, server.origin, (event) => report.take(event));
  const result = await cancellable(page, () =>
    page.generate({
      image,
      loras,
      parameters,
      model: options.model,
      backend,
    }),
  );

  const file = out ?? path.resolve('out', result.videoFile);
  await makeFolders(file);
  await page.save(result.videoFile, file);
  await verify(file, result, frameCount(parameters.duration));
  report.line(`\n${summary(path.relative('', file), result)}`);
}

/** What a person without a GPU should know about where the work is done. */
function withoutGpu(backend: Backend, asked: boolean): string {
  if (backend === 'webgpu') return 'No GPU is used: WebGPU runs on the CPU (SwiftShader).';
  return asked
    ? 'The CPU computes (WebAssembly).'
    : 'There is no GPU here: the CPU computes (WebAssembly). --backend webgpu emulates one, slower.';
}

/** Lets Ctrl-C end the work inside the page first; a page that does not answer is simply closed. */
async function cancellable<T>(page: HeadlessPage, work: () => Promise<T>): Promise<T> {
  // A signal that came before the listener below would be lost.
  abort.signal.throwIfAborted();
  const aborted = new Promise<never>((_, reject) => {
    abort.signal.addEventListener('abort', () => {
      void Promise.race([page.cancel().catch(() => undefined), delay(3000)]).then(() =>
        reject(new KinoraError('CANCELLED')),
      );
    });
  });
  return await Promise.race([work(), aborted]);
}

/** The file on disk must be what was asked for; one that is not does not stay. */
async function verify(
  file: string,
  asked: { width: number; height: number; finishedEarly: boolean },
  frames: number,
): Promise<void> {
  try {
    const facts = await inspectVideo(await openAsBlob(file));
    const right =
      facts.width === asked.width &&
      facts.height === asked.height &&
      facts.frames === frames &&
      Math.abs(facts.frameRate - framesPerSecond) < 0.01;
    if (right) return;
    throw new KinoraError(
      'ENCODER_FAILED',
      `The video came out as ${facts.width}×${facts.height} with ${facts.frames} frames at ` +
        `${facts.frameRate} per second, expected ${asked.width}×${asked.height} with ${frames} at ` +
        `${framesPerSecond}.`,
    );
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  }
}
