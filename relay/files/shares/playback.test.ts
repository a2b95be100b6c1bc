/** @module-tag full */
import { type Browser, chromium } from 'playwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { testLaunchOptions } from '../../../lib/cli/browser/launch';
import type { Share } from '../../../lib/contract/v3';
import { ProtocolWorker } from '../../testing/protocol-worker';
import { type FilesTest, startFilesTest } from '../testing/node';

let node: FilesTest;
let browser: Browser;
beforeAll(async () => {
  [node, browser] = await Promise.all([
    startFilesTest(),
    testLaunchOptions().then((options) => chromium.launch(options)),
  ]);
}, 90_000);
afterAll(async () => {
  await browser?.close();
  await node?.stop();
});

test('the video of a link plays and seeks in Chromium, on a clean profile without scripts', async () => {
  const { body } = await node.api('/api/v3/kinora/wan-2.2/i2v-720p-lora', {
    image: `data:image/png;base64,${node.image.toString('base64')}`,
    prompt: 'A lantern swings',
  });
  const worker = new ProtocolWorker({ origin: node.origin, token: node.workerToken });
  await worker.once(AbortSignal.timeout(30_000));
  const everything = { include: { prompt: true, settings: true, image: true } };
  const shared = await node.api(`/api/v3/predictions/${body.data?.id}/share`, everything);
  const { url } = shared.body.data as unknown as Share;

  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  const statuses: number[] = [];
  page.on('response', (response) => {
    if (response.url().endsWith('/video.mp4')) statuses.push(response.status());
  });
  await page.goto(url);
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('A lantern swings');
  const video = page.locator('video');
  // Listeners of events do not run without scripts.
  await video.evaluate((element: HTMLVideoElement) => {
    element.muted = true;
    void element.play();
  });
  const options = { timeout: 20_000 };
  const timeOf = (element: HTMLVideoElement) => element.currentTime;
  await expect.poll(() => video.evaluate(timeOf), options).toBeGreaterThan(0);
  await video.evaluate((element: HTMLVideoElement) => {
    element.pause();
    element.currentTime = 4;
  });
  const stateOf = ({ seeking, currentTime, duration, videoWidth }: HTMLVideoElement) => ({
    seeking,
    currentTime,
    duration: Math.round(duration),
    videoWidth,
  });
  await expect
    .poll(() => video.evaluate(stateOf), options)
    .toEqual({ seeking: false, currentTime: 4, duration: 5, videoWidth: 1280 });
  expect(statuses).toContain(206);
  for (const width of [390, 1920]) {
    await page.setViewportSize({ width, height: 900 });
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    expect(overflow).toBe(0);
  }
  expect(await page.getByRole('button').count()).toBe(0);
  await context.close();

  const scripted = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
  const visitor = await scripted.newPage();
  const refusals: string[] = [];
  visitor.on('console', (message) => refusals.push(message.text()));
  await visitor.goto(url);
  await visitor.getByRole('button', { name: 'Copy prompt' }).click();
  await expect.poll(() => visitor.getByRole('button').textContent()).toBe('Copied');
  expect(await visitor.evaluate(() => navigator.clipboard.readText())).toBe('A lantern swings');
  expect(refusals).toEqual([]);
  await scripted.close();
}, 90_000);
