import { openAsBlob } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { BlobSource, Input, MP4 } from 'mediabunny';
import { startServer } from '../lib/cli/dev/app-server';
import { freePort } from '../lib/cli/process';
import { toBytes } from '../lib/video/bytes';
import { inspectVideo } from '../lib/video/inspect';
import { mendedConfiguration } from '../lib/video/webcodecs-encoder';
import { ApiCaller } from './support/api-caller';
import { expect, full, test } from './support/fixtures';
import { firefox, type OtherBrowser, webKit } from './support/other-browsers';

const frames = 121;
const format = { width: 1280, height: 720, frames, frameRate: 24 };

/** What the studio's first panel says: the run, or its video. */
function panel(browser: OtherBrowser): Promise<string> {
  return browser.evaluate(() => {
    return document.querySelector<HTMLElement>('.panel.stage')?.innerText ?? '';
  }, null);
}

async function waitForPanel(browser: OtherBrowser, text: RegExp): Promise<void> {
  await expect.poll(() => panel(browser), { timeout: 400_000 }).toMatch(text);
}

/** Presses a button of the first panel as soon as it is there. */
async function press(browser: OtherBrowser, name: string): Promise<void> {
  const click = (wanted: string) => {
    const buttons = document.querySelectorAll<HTMLButtonElement>('.panel.stage button');
    const button = [...buttons].find((one) => one.innerText === wanted && !one.disabled);
    button?.click();
    return button !== undefined;
  };
  await expect.poll(() => browser.evaluate(click, name)).toBe(true);
}

/** Tells what the player shows when it has played on, over the end of the video. */
async function playOverTheEnd(browser: OtherBrowser) {
  // The player comes a moment after the words above it.
  const there = () =>
    (document.querySelector<HTMLVideoElement>('.panel.stage video')?.duration ?? 0) > 0;
  await expect.poll(() => browser.evaluate(there, null)).toBe(true);
  return browser.evaluate(async () => {
    const video = document.querySelector<HTMLVideoElement>('.panel.stage video');
    if (!video) throw new Error('there is no player');
    const count = () => document.querySelector<HTMLElement>('.frame-count')?.innerText ?? '';
    await video.play();
    video.currentTime = video.duration - 0.5;
    const deadline = performance.now() + 60_000;
    while (video.currentTime > 1 || video.currentTime < 0.3) {
      if (performance.now() > deadline) throw new Error(`the player stays at ${video.currentTime}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const frame = Number(/\d+/.exec(count())?.[0]);
    return { frame, width: video.videoWidth, height: video.videoHeight };
  }, null);
}

async function downloaded({ downloads }: OtherBrowser): Promise<Blob> {
  const finished = async () => {
    const names = await readdir(downloads).catch(() => []);
    return names.length === 1 ? names.filter((name) => name.endsWith('.mp4')) : [];
  };
  await expect.poll(finished).toHaveLength(1);
  return openAsBlob(path.join(downloads, (await finished())[0] ?? ''));
}

async function decoderConfiguration(video: Blob): Promise<Uint8Array> {
  const input = new Input({ source: new BlobSource(video), formats: [MP4] });
  const config = await (await input.getPrimaryVideoTrack())?.getDecoderConfig();
  input.dispose();
  if (!config?.description) throw new Error('the video has no decoder configuration');
  return toBytes(config.description);
}

for (const kind of [firefox, webKit]) {
  test(
    `${kind.name}: the sample on the CPU, resumed, played, downloaded, offline${kind === firefox ? '; a job of the API' : ''}`,
    full,
    // biome-ignore lint/correctness/noEmptyPattern: Playwright wants a pattern, even an empty one.
    async ({}, testInfo) => {
      const missing = kind.missing();
      if (missing) console.log(`${kind.name} is not tested: ${missing}`);
      test.skip(missing !== null, missing ?? '');
      test.setTimeout(900_000);
      const place = { port: await freePort(), folder: testInfo.outputPath('server') };
      let server = await startServer(place);
      const { apiKey, workerToken, origin } = server;
      const browser = await kind.start(testInfo.outputPath('browser'));
      try {
        await test.step('the sample begins', async () => {
          await browser.goto(`${origin}/`);
          await browser.evaluate(() => navigator.serviceWorker.ready.then(() => true), null);
          await browser.evaluate(() => {
            for (const part of document.querySelectorAll('details')) part.open = true;
            for (const label of document.querySelectorAll('label')) {
              if (label.innerText.trim() === 'CPU') label.click();
            }
          }, null);
          await press(browser, 'Try the sample');
          await waitForPanel(browser, /Step [2-4] of 4/);
        });
        await test.step('a reload interrupts it, and it goes on where it was', async () => {
          await browser.goto(`${origin}/`);
          await waitForPanel(browser, /^Interrupted at step [1-4] of 4/);
          await press(browser, 'Resume');
          await waitForPanel(browser, /^(Your video|The video failed)/);
          expect(await panel(browser)).toMatch(/^Your video/);
        });
        await test.step('it plays, and the shown frame is one of the video', async () => {
          const { frame, ...size } = await playOverTheEnd(browser);
          expect(size).toEqual({ width: 1280, height: 720 });
          expect(frame).toBeGreaterThan(0);
          expect(frame).toBeLessThanOrEqual(frames);
        });
        await test.step('it is downloaded, and is whole', async () => {
          await press(browser, 'Download');
          const video = await downloaded(browser);
          expect(await inspectVideo(video)).toMatchObject(format);
          const configuration = await decoderConfiguration(video);
          expect(mendedConfiguration(configuration)).toBe(configuration);
        });
        await test.step('without the server the page and its video are there', async () => {
          await server.stop();
          await browser.goto(`${origin}/`);
          await waitForPanel(browser, /^Your video/);
        });
        // The page Serve uses nothing else of a browser than the studio; once more costs minutes.
        if (kind === webKit) return;
        await test.step('it computes a job of the API', async () => {
          server = await startServer(place);
          await browser.goto(`${origin}/serve`);
          // A loaded page takes no calls before its scripts have run.
          const ready = () => browser.evaluate(() => window.kinoraServe !== undefined, null);
          await expect.poll(ready).toBe(true);
          await browser.evaluate(
            (token) =>
              window.kinoraServe?.connect({
                token,
                model: 'tiny',
                name: 'Tab',
                device: { backend: 'wasm' },
              }),
            workerToken,
          );
          const status = () => browser.evaluate(() => window.kinoraServe?.status(), null);
          await expect.poll(status, { timeout: 60_000 }).toBe('idle');
          const caller = new ApiCaller(origin, apiKey);
          const job = await caller.ended(await caller.submit(), 6);
          expect(job).toMatchObject({ status: 'completed', error: '' });
          const video = await fetch(String(job.outputs[0]));
          expect(await inspectVideo(await video.blob())).toMatchObject(format);
        });
      } catch (thrown) {
        const text = () => document.querySelector('main')?.innerText ?? '';
        const page = await browser.evaluate(text, null).catch(String);
        console.log(`The page:\n${page}\nIts console:\n${browser.log()}`);
        console.log(`The server:\n${server.output()}`);
        throw thrown;
      } finally {
        await browser.close();
        await server.stop();
      }
    },
  );
}
