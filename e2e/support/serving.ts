import type { Browser, Page } from 'playwright';
import type { ApiServer } from '../../lib/cli/browser/server';

/** A connected tab that computes with the tiny model on the CPU. */
export interface ServingTab {
  readonly page: Page;
  /** Everything its console said, and what nobody caught. */
  readonly said: readonly string[];
  close(): Promise<void>;
}

/** Opens the page Serve in a real browser and connects it to the server that it came from. */
export async function openServingTab(browser: Browser, server: ApiServer): Promise<ServingTab> {
  const context = await browser.newContext();
  const page = await context.newPage();
  const said: string[] = [];
  page.on('console', (message) => said.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => said.push(`uncaught: ${error.message}`));
  await page.goto(`${server.origin}/serve`);
  await page.waitForFunction(() => window.kinoraServe !== undefined);
  await page.evaluate(
    (token) =>
      window.kinoraServe?.connect({ token, model: 'tiny', backend: 'wasm', name: 'A tab' }),
    server.workerToken,
  );
  await page.waitForFunction(() => window.kinoraServe?.status() === 'idle', undefined, {
    timeout: 60_000,
  });
  return { page, said, close: () => context.close() };
}
