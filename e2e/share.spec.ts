import type { Share } from '../lib/contract/v3';
import { ProtocolWorker } from '../relay/testing/protocol-worker';
import { KeysPage } from './pages/keys-page';
import { StudioPage } from './pages/studio-page';
import type { ApiCaller } from './support/api-caller';
import { expectAccessible, full, picturePath } from './support/fixtures';
import { expect, test } from './support/serve-fixtures';

/** A link to a finished prediction. */
async function shared(caller: ApiCaller, workerToken: string, include: object): Promise<Share> {
  const id = await caller.submit();
  const worker = new ProtocolWorker({ origin: caller.origin, token: workerToken });
  await worker.once(AbortSignal.timeout(30_000));
  const body = JSON.stringify({ include });
  return await caller.json<Share>('POST', `/api/v3/predictions/${id}/share`, body);
}

test('a shared video plays and seeks on a clean profile without JavaScript, and its request opens in the studio', async ({
  browser,
  caller,
  workerToken,
  context,
}) => {
  const everything = { prompt: true, settings: true, image: true };
  const { id, url, prediction_id } = await shared(caller, workerToken, everything);
  expect(url).toBe(`${caller.origin}/s/${id}`);

  const clean = await browser.newContext({ javaScriptEnabled: false });
  const page = await clean.newPage();
  const said: string[] = [];
  page.on('console', (message) => said.push(message.text()));
  const ranges: number[] = [];
  page.on('response', (response) => {
    if (response.url().endsWith('/video.mp4')) ranges.push(response.status());
  });
  await page.goto(url);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('A lantern swings');
  // Scripts of the page itself are off; Playwright's are not.
  const video = page.locator('video');
  await expect
    .poll(() => video.evaluate((element: HTMLVideoElement) => element.readyState))
    .toBeGreaterThan(0);
  // Listeners of events do not run without scripts.
  await video.evaluate((element: HTMLVideoElement) => {
    element.muted = true;
    void element.play();
  });
  const timeOf = (element: HTMLVideoElement) => element.currentTime;
  await expect.poll(() => video.evaluate(timeOf)).toBeGreaterThan(0);
  await video.evaluate((element: HTMLVideoElement) => {
    element.pause();
    element.currentTime = 4;
  });
  const stateOf = ({
    seeking,
    currentTime,
    duration,
    videoWidth,
    videoHeight,
  }: HTMLVideoElement) => ({
    seeking,
    currentTime,
    duration: Math.round(duration),
    size: [videoWidth, videoHeight],
  });
  await expect
    .poll(() => video.evaluate(stateOf))
    .toEqual({ seeking: false, currentTime: 4, duration: 5, size: [1280, 720] });
  expect(ranges).toContain(206);
  await test.step('views', async () => {
    for (const scheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      for (const width of [390, 1280, 1920]) {
        await page.setViewportSize({ width, height: 900 });
        const overflow = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        expect(overflow).toBe(0);
        const folder = process.env.KINORA_SHOTS;
        if (folder)
          await page.screenshot({ path: `${folder}/${scheme}-${width}.png`, fullPage: true });
      }
    }
  });
  expect(said).toEqual([]);
  await clean.close();

  const second = await context.newPage();
  await second.goto(url);
  await test.step('accessibility', () => expectAccessible(second));
  await second.getByRole('link', { name: 'Open in Kinora' }).click();
  const studio = new StudioPage(second);
  await expect(studio.prompt).toHaveValue('A lantern swings');
  await expect(await studio.field('Seed')).toHaveValue('7');
  await expect(second.getByRole('img', { name: /^Start image/ })).toBeVisible();

  await caller.json('DELETE', `/api/v3/predictions/${prediction_id}/share`);
  const gone = await second.request.get(url);
  expect(gone.status()).toBe(410);
});

test(
  'a video of the studio is uploaded when signed in, watched by its link, and taken back',
  full,
  async ({ browser, page, caller }) => {
    const body = JSON.stringify({ kind: 'sign-in', name: 'A link' });
    const { key } = await caller.json<{ key: string }>('POST', '/api/admin/keys', body);
    await new KeysPage(page).openLink(key);
    const studio = new StudioPage(page);
    await studio.open();
    await studio.fill({ image: picturePath, prompt: 'A shared boat', steps: 1 });
    await studio.chooseCpu();
    await studio.generate();
    await studio.waitForResult();

    await studio.result.getByRole('button', { name: 'Share', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Share this video' });
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      dialog.getByRole('button', { name: 'Download the file' }).click(),
    ]);
    expect(file.suggestedFilename()).toMatch(/^kinora-.*\.mp4$/);
    await test.step('accessibility', () => expectAccessible(page));
    await dialog.getByLabel('Show the settings').uncheck();
    await dialog.getByRole('button', { name: 'Upload and make a link' }).click();
    const link = dialog.getByRole('link');
    await expect(link).toHaveText(/\/s\/[0-9a-f]{32}$/);
    const url = (await link.getAttribute('href')) ?? '';

    const clean = await (await browser.newContext()).newPage();
    await clean.goto(url);
    await expect(clean.getByRole('heading', { level: 1 })).toHaveText('A shared boat');
    await expect(clean.getByText('Seed')).toHaveCount(0);
    const video = clean.locator('video');
    await expect
      .poll(() =>
        video.evaluate(({ readyState, videoWidth }: HTMLVideoElement) => [
          readyState > 0,
          videoWidth,
        ]),
      )
      .toEqual([true, 1280]);

    await dialog.getByRole('button', { name: 'Delete it from the server' }).click();
    await expect(dialog.getByRole('button', { name: 'Upload and make a link' })).toBeVisible();
    expect((await clean.request.get(url)).status()).toBe(410);
    await clean.context().close();
  },
);
