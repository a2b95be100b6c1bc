import { openAsBlob } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import {
  finishersOf,
  formatOfFile,
  frameCount,
  framesInFile,
  type HeadlessEvent,
  isBundled,
  KinoraError,
  ofLastImage,
  resolveSeed,
} from '../contract';
import { inspectVideo, type VideoFacts } from '../video/inspect';
import { deviceOf } from './arguments';
import { withoutGpu } from './browser/launch';
import { Command } from './command';
import { openWithModel } from './fetch-model';
import {
  type GenerateOptions,
  generateHelp,
  parseGenerateOptions,
  withModelDefaults,
} from './generate-options';
import { readImage, readManifest, sortLoras } from './inputs';
import {
  addedIds,
  checkWritable,
  fromUser,
  kinoraHome,
  makeFolders,
  notedSafetyChecker,
} from './paths';
import { ProgressReport, summary } from './report';
import { RunTimes } from './run-times';
import { openSession } from './session';

// With --json the standard output is one document.
const json = process.argv.includes('--json');
process.exitCode = await new Command(json ? process.stderr : process.stdout).run(
  async (command) => {
    const options = parseGenerateOptions(process.argv.slice(2));
    if (options === 'help') process.stdout.write(generateHelp);
    else await generate(command, options);
  },
);

async function generate(command: Command, line: GenerateOptions): Promise<void> {
  const { model, profile, options } = line;
  // All inputs are checked first: nothing is built or started for a bad request.
  const home = kinoraHome();
  const listed = await readManifest(model, await addedIds(home));
  const bundled = listed !== null && isBundled(listed);
  const { loras, libraryLoras } = await sortLoras(line.parameters.loras, !bundled);
  const image = await readImage(line.image, command.signal);
  const lastImage =
    line.lastImage &&
    (await ofLastImage(readImage(line.lastImage.from, command.signal, '--last-image')));
  const out = line.out === undefined ? undefined : fromUser(line.out);
  await checkWritable(out ?? path.resolve('out', 'video.mp4'));

  const report = new ProgressReport(command.screen);
  const times = new RunTimes();
  const onProgress = (event: HeadlessEvent) => {
    report.take(event);
    times.take(event);
  };
  // A browser that forgets everything has no language model, safety checker or network that finishes videos.
  const checked = options.safetyChecker && (await notedSafetyChecker(home));
  const network = finishersOf(line.parameters).length > 0;
  const forgetting = bundled && !options.promptOptimizer && !checked && !network;
  const { page, software, manifest } = forgetting
    ? { ...(await openSession(command, onProgress)), manifest: listed }
    : await openWithModel(command, home, line, onProgress);
  const { loras: _, ...withDefaults } = withModelDefaults(line, manifest.defaults);
  const parameters = { ...withDefaults, seed: resolveSeed(withDefaults.seed) };
  if (withDefaults.negative_prompt !== line.parameters.negative_prompt) {
    command.say(`Negative prompt of the model: ${withDefaults.negative_prompt}`);
  }
  const device = deviceOf(line.device, software);
  if (software) command.say(withoutGpu(device.backend, line.device.backend));

  const framing = line.lastImage?.framing;
  const ends = lastImage && { lastImage: { name: lastImage.name, framing } };
  const files = { image, lastImage, loras, libraryLoras };
  const request = {
    ...files,
    parameters,
    model,
    profile,
    options: { ...options, ...ends },
    device,
  };
  const result = await command.interruptible(
    () => page.generate(request),
    () => page.cancel(),
  );

  times.end();
  const file = out ?? path.resolve('out', result.videoFile);
  await makeFolders(file);
  await page.save(result.videoFile, file);
  const frames = framesInFile(frameCount(manifest, parameters.duration), parameters);
  await verify(file, { ...formatOfFile(parameters, manifest.framesPerSecond), frames });
  if (!forgetting) await page.call('clearHistory');
  command.say(`\n${summary(path.relative('', file), result)}`);
  if (!json) return;
  const { adapter, features } = await page.call('probe');
  const { peakBytes, waits, loadSeconds } = await page.call('counters');
  const { phases, steps } = times;
  const measured = { phases, steps, loadSeconds, peakBytes, waits };
  const made = { file, ...result, adapter, software, features, ...measured };
  process.stdout.write(`${JSON.stringify(made, null, 2)}\n`);
}

/** Checks that the file on disk is the requested one, and deletes it otherwise. */
async function verify(
  file: string,
  asked: Pick<VideoFacts, 'width' | 'height' | 'frames' | 'frameRate'>,
): Promise<void> {
  const { width, height, frames, frameRate } = asked;
  try {
    const facts = await inspectVideo(await openAsBlob(file));
    const right =
      facts.width === width &&
      facts.height === height &&
      facts.frames === frames &&
      Math.abs(facts.frameRate - frameRate) < 0.01;
    if (right) return;
    throw new KinoraError(
      'ENCODER_FAILED',
      `The video came out as ${facts.width}×${facts.height} with ${facts.frames} frames at ` +
        `${facts.frameRate} per second, expected ${width}×${height} with ${frames} at ` +
        `${frameRate}.`,
    );
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  }
}
