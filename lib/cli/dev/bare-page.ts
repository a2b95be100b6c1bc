import type { Page } from 'playwright';
import { openPage } from '../browser/headless-page';
import { launchBrowser, withoutGpu } from '../browser/launch';
import { type BarePage, servePages } from '../browser/page-bundle';

/**
 * Opens a bare page in headless Chromium for some work, and ends browser and server after it.
 *
 * @param prepare called before the page is loaded, to expose functions to it
 */
export async function withBarePage<T>(
  name: BarePage,
  prepare: (page: Page) => Promise<unknown>,
  work: (page: Page) => Promise<T>,
): Promise<T> {
  const pages = await servePages();
  try {
    const { browser, software } = await launchBrowser();
    try {
      if (software) process.stderr.write(`${withoutGpu('webgpu')}\n`);
      const page = await openPage(browser, pages.base + name, (opened) => {
        opened.on('pageerror', (error) => process.stderr.write(`${error}\n`));
        return prepare(opened);
      });
      return await work(page);
    } finally {
      await browser.close();
    }
  } finally {
    await pages.close();
  }
}
