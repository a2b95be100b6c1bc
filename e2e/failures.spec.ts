import { openAsBlob } from 'node:fs';
import type { Locator, Page } from 'playwright';
import { inspectVideo } from '../lib/video/inspect';
import { StudioPage } from './pages/studio-page';
import {
  expect,
  expectAccessible,
  fixtureVideo,
  full,
  picturePath,
  test,
} from './support/fixtures';
import { storedFiles } from './support/stored-videos';

/** The studio, filled in and set to the CPU; its console may report the failure that is made. */
async function openStudio(page: Page): Promise<StudioPage> {
  const studio = new StudioPage(page);
  await studio.open();
  await studio.fill({ image: picturePath, prompt: 'A lantern swings', steps: 2 });
  await studio.chooseCpu();
  return studio;
}

/** The failure must show with its remedy, offer another try, and leave nothing half-written. */
async function expectFailure(studio: StudioPage, code: string, sentence: RegExp) {
  await expect(studio.failure).toBeVisible({ timeout: 180_000 });
  const problem = studio.failure.locator(`[data-code="${code}"]`);
  await expect(problem).toContainText(sentence);
  // A sentence and a remedy, so at least two full stops.
  await expect(problem).toContainText(/\..+\./);
  await expect(studio.failure.getByRole('button', { name: 'Run again' })).toBeEnabled();
  expect(await storedFiles(studio.page, 'videos')).toEqual([]);
}

test('a truncated file of the model is shown with its remedy', full, async ({ page }) => {
  await page
    .context()
    .route('**/models/tiny/transformer/diffusion_pytorch_model.safetensors', async (route) => {
      // Without ranges, as a plain server would.
      const { range: _, ...headers } = route.request().headers();
      const body = await (await route.fetch({ headers })).body();
      await route.fulfill({ status: 200, body: body.subarray(0, body.length - 1000) });
    });
  const studio = await openStudio(page);
  await studio.generateButton.click();
  await expectFailure(studio, 'MODEL_FILE_TRUNCATED', /ends too early/);
});

/** The finished video that could not be stored is offered from memory, whole. */
async function expectDownload(card: Locator): Promise<void> {
  const [download] = await Promise.all([
    card.page().waitForEvent('download'),
    card.getByRole('button', { name: 'Download the video' }).click(),
  ]);
  const file = test.info().outputPath('unsaved.mp4');
  await download.saveAs(file);
  const video = await inspectVideo(await openAsBlob(file));
  expect(video).toMatchObject(fixtureVideo);
}

test(
  'storage that is full from the start is said before the run',
  full,
  async ({ page, baseURL }) => {
    test.slow();
    const client = await page.context().newCDPSession(page);
    const origin = baseURL ?? '';
    const note = page.getByRole('form').locator('[data-code="STORAGE_FULL"]');
    const studio = await openStudio(page);
    await expect(note).toHaveCount(0);
    const { usage } = await client.send('Storage.getUsageAndQuota', { origin });
    await client.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: usage + 1_000_000 });
    await page.reload();
    await expect(studio.generateButton).toBeEnabled();
    await page.mouse.move(2, 2);
    await expect(note).toContainText('Free some space first');
    await studio.generate();
    // There is room for the state of the run, but not for the video.
    const { interrupted } = studio;
    const problem = interrupted.locator('[data-code="STORAGE_FULL"]');
    await expect(problem).toBeVisible({ timeout: 240_000 });
    expect(await storedFiles(page, 'videos')).toEqual([]);
    await expectDownload(interrupted);
    await expectAccessible(page);

    // A person frees space, and comes back.
    await client.send('Storage.overrideQuotaForOrigin', { origin });
    await page.evaluate(() => window.dispatchEvent(new Event('focus')));
    await expect(note).toHaveCount(0);
    await expect(interrupted.getByRole('button', { name: 'Resume' })).toBeEnabled();
  },
);

test(
  'a browser that blocks the database or the file system says so',
  full,
  async ({ page, context }) => {
    await test.step('no database', async () => {
      await page.addInitScript(() => {
        IDBFactory.prototype.open = () => {
          throw new DOMException('The operation is insecure.', 'SecurityError');
        };
      });
      const studio = new StudioPage(page);
      await studio.open();
      await expect(studio.problem('STORAGE_BLOCKED')).toContainText(/does not let Kinora store/);
    });
    await test.step('no file system', async () => {
      const other = await context.newPage();
      await other.addInitScript(() => {
        Object.defineProperty(Navigator.prototype, 'storage', { value: undefined });
      });
      const studio = new StudioPage(other);
      await studio.open();
      await studio.fill({ image: picturePath, prompt: 'A lantern swings', steps: 1 });
      await studio.chooseCpu();
      // Generate works as far as it can: the worker of this page still has the file system.
      await studio.generate();
    });
  },
);

test('a page whose headers refuse workers or threads says which', full, async ({ page }) => {
  const open = async (headers: Readonly<Record<string, string>>) => {
    await page.unrouteAll();
    await page.route(/\/$/, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, headers: { ...response.headers(), ...headers } });
    });
    await page.goto('/');
  };
  const thread = page.getByRole('button', { name: 'CPU, one thread' });
  const studio = new StudioPage(page);
  await open({ 'content-security-policy': "worker-src 'none'" });
  await expect(studio.problem('SCRIPT_REFUSED').first()).toContainText(/does not run a script/);
  await expect(studio.problem('STORAGE_BLOCKED')).toHaveCount(0);
  await expect(thread).toHaveCount(0);
  await open({ 'cross-origin-opener-policy': 'unsafe-none' });
  await thread.click();
  await expect(page.getByText(/^One thread of the CPU computes/)).toBeVisible();
  await expect(studio.problem('SCRIPT_REFUSED')).toHaveCount(0);
});

test('a page whose script cannot be fetched is replaced by a sentence', full, async ({ page }) => {
  const studio = new StudioPage(page);
  await studio.open();
  await page.route('**/_next/static/**/*.js', (route) => route.abort());
  await page.getByRole('link', { name: 'API', exact: true }).click();
  await expect(page.getByRole('heading', { name: 'This page failed' })).toBeVisible();
  await expect(studio.problem('SERVER_UNREACHABLE')).toBeVisible();
  await page.unroute('**/_next/static/**/*.js');
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(page.getByRole('heading', { name: 'This page failed' })).toHaveCount(0);
  await expect(page.getByRole('main')).toBeVisible();
});
