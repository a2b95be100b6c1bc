import { type ApiServer, startServer } from '../../lib/cli/browser/server';
import { ServePage } from '../pages/serve';
import { test as base, expect } from './fixtures';
import { ApiCaller } from './serve-caller';

interface Fixtures {
  /** Whether the test cuts or refuses requests on purpose: what Chromium itself writes then is let pass. */
  readonly cuts: boolean;
  /** A caller of the API; what it leaves waiting is cancelled after the test. */
  readonly caller: ApiCaller;
  readonly workerToken: string;
  /** The page, opened. The test fails when any page of its browser writes to the console. */
  readonly serve: ServePage;
}

interface WorkerFixtures {
  /** A server of this process of Playwright's own: what it is asked for, no tab of another file takes. */
  readonly server: ApiServer;
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
  baseURL: async ({ server }, use) => {
    await use(server.origin);
  },
  caller: async ({ server }, use) => {
    const caller = new ApiCaller(server.origin, server.apiKey);
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

export { expect };
