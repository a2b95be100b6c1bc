import type { Browser, Page } from 'playwright';
import { type ApiServer, startServer } from '../../lib/cli/dev/app-server';
import { termsVersion } from '../../lib/contract';
import { scopes } from '../../lib/contract/v3';
import { ServePage } from '../pages/serve-page';
import { ApiCaller } from './api-caller';
import { test as base, expect, withFixtureModel } from './fixtures';

interface Fixtures {
  /** Whether the test breaks requests on purpose: what Chromium then writes is ignored. */
  readonly cuts: boolean;
  /** A caller of the API. Its unfinished predictions are cancelled after the test. */
  readonly caller: ApiCaller;
  readonly workerToken: string;
  /** The page, opened. The test fails when any page of its browser writes to the console. */
  readonly serve: ServePage;
}

interface WorkerFixtures {
  /** A server for each process of Playwright, so that tabs of other files take none of its jobs. */
  readonly server: ApiServer;
  /** A key of the server's owner with every scope; the first one has not `admin`. */
  readonly adminKey: string;
}

/** What Chromium writes of a failed request, which no page can prevent. */
const failedRequest =
  /^Failed to load resource: (net::ERR_|the server responded with a status of )/;

/** Playwright's `test` with the page Serve and a caller of the API. */
export const test = base.extend<Fixtures, WorkerFixtures>({
  cuts: [false, { option: true }],
  server: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright wants a pattern, even an empty one.
    async ({}, use) => {
      const server = await startServer();
      await use(server);
      await server.stop();
    },
    { scope: 'worker' },
  ],
  adminKey: [
    async ({ server }, use) => {
      const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
        const all = { Origin: server.origin, 'Content-Type': 'application/json', ...headers };
        const init = { method: 'POST', headers: all, body: JSON.stringify(body) };
        return await fetch(server.origin + path, init);
      };
      const session = await post('/api/admin/session', { token: server.signInToken });
      const Cookie = session.headers.get('set-cookie')?.split(';')[0] ?? '';
      const key = { kind: 'api', name: 'Tests', scopes, accept_terms: termsVersion };
      const made = await post('/api/admin/keys', key, { Cookie });
      await use((await made.json()).data.key);
    },
    { scope: 'worker' },
  ],
  baseURL: async ({ server }, use) => {
    await use(server.origin);
  },
  caller: async ({ server, adminKey }, use) => {
    const caller = new ApiCaller(server.origin, adminKey);
    await use(caller);
    await caller.cancelAll();
  },
  workerToken: async ({ server }, use) => {
    await use(server.workerToken);
  },
  context: async ({ context, cuts }, use) => {
    const said: string[] = [];
    context.on('console', (message) => {
      if (cuts && failedRequest.test(message.text())) return;
      said.push(`${message.type()}: ${message.text()} (${message.location().url})`);
    });
    context.on('weberror', (error) => said.push(`uncaught: ${error.error().stack}`));
    await use(context);
    expect(said, 'the console stays silent').toEqual([]);
  },
  serve: async ({ page }, use) => {
    const serve = new ServePage(page);
    await serve.open();
    await use(serve);
  },
});

/** A connected tab that computes with the tiny model on the CPU. */
export interface ServingTab {
  readonly page: Page;
  /** Everything that its console said, and uncaught errors. */
  readonly said: readonly string[];
  close(): Promise<void>;
}

/** Opens the page Serve in a real browser and connects it to the server that it came from. */
export async function openServingTab(browser: Browser, server: ApiServer): Promise<ServingTab> {
  const context = await browser.newContext();
  await withFixtureModel(context);
  const page = await context.newPage();
  const said: string[] = [];
  page.on('console', (message) => said.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => said.push(`uncaught: ${error.message}`));
  await page.goto(`${server.origin}/serve`);
  await page.waitForFunction(() => window.kinoraServe !== undefined);
  await page.evaluate(
    (token) =>
      window.kinoraServe?.connect({
        token,
        model: 'tiny',
        name: 'A tab',
        device: { backend: 'wasm' },
      }),
    server.workerToken,
  );
  await page.waitForFunction(() => window.kinoraServe?.status() === 'idle', undefined, {
    timeout: 60_000,
  });
  return { page, said, close: () => context.close() };
}

export { expect };
