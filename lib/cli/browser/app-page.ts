import type { Page } from 'playwright';
import { startApp } from '../app-server';
import { ensureBuild } from '../build';
import { launchBrowser } from './launch';

/**
 * Opens a page of the built app in headless Chromium for some work, and ends browser and server after it.
 *
 * @param path such as `/headless/bench`; it is ready when its `main` says so
 * @param prepare called before the page is loaded, to expose functions to it
 */
export async function withAppPage<T>(
  path: string,
  prepare: (page: Page) => Promise<unknown>,
  work: (page: Page) => Promise<T>,
): Promise<T> {
  await ensureBuild((line) => process.stderr.write(`${line}\n`));
  const app = await startApp();
  try {
    const { browser } = await launchBrowser();
    try {
      const page = await browser.newPage();
      page.on('pageerror', (error) => process.stderr.write(`${error}\n`));
      await prepare(page);
      await page.goto(`${app.origin}${path}`);
      await page.locator('main[data-ready="true"]').waitFor({ state: 'attached' });
      return await work(page);
    } finally {
      await browser.close();
    }
  } finally {
    await app.stop();
  }
}
