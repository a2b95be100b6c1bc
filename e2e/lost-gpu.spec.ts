import { type Browser, type BrowserContext, chromium } from 'playwright';
import { testLaunchOptions } from '../lib/cli/browser/launch';
import { StudioPage } from './pages/studio-page';
import { full, picturePath, withFixtureModel } from './support/fixtures';
import { expect, test as serveTest } from './support/serve-fixtures';

/**
 * The GPU process of the browser is killed while a run computes on it, as a driver that crashes ends it. Each test
 * has a browser of its own: Chromium offers no GPU any more where its GPU process ends twice within minutes.
 */
const test = serveTest.extend<{ lost: Browser }>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright wants a pattern, even an empty one.
  lost: async ({}, use) => {
    const browser = await chromium.launch(await testLaunchOptions());
    await use(browser);
    await browser.close();
  },
  context: async ({ lost, baseURL, locale }, use) => {
    const context = await lost.newContext({
      ...(baseURL !== undefined && { baseURL }),
      ...(locale !== undefined && { locale }),
    });
    await withFixtureModel(context);
    await use(context);
  },
});

/** Ends the GPU process of a browser, which it finds by the browser itself. */
async function killGpu(context: BrowserContext): Promise<void> {
  const session = await context.browser()?.newBrowserCDPSession();
  const { processInfo = [] } = (await session?.send('SystemInfo.getProcessInfo')) ?? {};
  const gpu = processInfo.find(({ type }) => type === 'GPU');
  if (!gpu) throw new Error('the browser has no GPU process');
  process.kill(gpu.id, 'SIGKILL');
  await session?.detach();
}

/** Starts a run of six steps on the emulated GPU and waits until three of them are done. */
async function startOnGpu(studio: StudioPage): Promise<void> {
  await studio.open();
  await studio.fill({ image: picturePath, prompt: 'A kite climbs', steps: 6 });
  await studio.chooseGpu();
  await studio.generate();
  // An emulated GPU begins slowly.
  await studio.stepLine(6).waitFor({ timeout: 240_000 });
  await studio.waitForStep(3, 6);
}

test(
  'a GPU that does not come back is said, and the CPU goes on with the run',
  full,
  async ({ page, context }) => {
    test.slow();
    const studio = new StudioPage(page);
    await startOnGpu(studio);
    await killGpu(context);
    await studio.waitForStep(4, 6);
    await killGpu(context);
    const { interrupted } = studio;
    await expect(interrupted).toBeVisible({ timeout: 120_000 });
    await expect(interrupted.locator('[data-code="DEVICE_LOST"]')).toContainText(
      'the browser has not offered one again for 30 s',
    );
    await interrupted.getByRole('button', { name: 'Resume on the CPU' }).click();
    await studio.waitForResult();
    await expect(studio.result).toContainText('tiny on the CPU');
    await expect(studio.result).toContainText('2 times, after interruptions');
  },
);
