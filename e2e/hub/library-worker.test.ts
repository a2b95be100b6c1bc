import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright';
import { createServer, type ViteDevServer } from 'vite';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { LibraryApi } from '../../lib/contract/library';
import { testLaunchOptions } from '../browser/launch';
import {
  goldenBytes,
  goldenId,
  goldenPath,
  goldenRepository,
  publishGoldenModel,
} from './golden-model';
import { type LocalHub, startHub } from './server';

let vite: ViteDevServer;
let origin: string;
let hub: LocalHub;
let browser: Browser;
let context: BrowserContext;

beforeAll(async () => {
  hub = await startHub();
  await publishGoldenModel(hub);
  vite = await createServer({
    configFile: false,
    root: fileURLToPath(new URL('../../', import.meta.url)),
    cacheDir: 'node_modules/.vite/library-worker-test',
    logLevel: 'error',
    server: { host: '127.0.0.1', port: 0, hmr: false, watch: null },
    optimizeDeps: {
      noDiscovery: true,
      include: ['@huggingface/gguf', '@huggingface/hub', 'comlink', 'hash-wasm', 'zod'],
    },
  });
  await vite.listen();
  origin = new URL(vite.resolvedUrls?.local[0] ?? '').origin;
  browser = await chromium.launch(await testLaunchOptions());
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await vite?.close();
  await hub?.close();
});

beforeEach(async () => {
  context = await browser.newContext();
});
afterEach(async () => {
  await context.close();
  hub.heal();
  hub.forget();
});

/** A page with a library of its own, as the app starts it. */
async function openTab(): Promise<Page> {
  const page = await context.newPage();
  await page.route('**/blank', (route) =>
    route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>Library</title>' }),
  );
  await page.goto(`${origin}/blank`);
  await start(page);
  return page;
}

async function start(page: Page): Promise<void> {
  await page.addScriptTag({ type: 'module', url: '/e2e/hub/library-page.ts' });
  await page.waitForFunction(() => 'testLibrary' in globalThis);
  await page.evaluate((hubUrl) => testLibrary.api.setHub(hubUrl), hub.url);
}

/** Runs one call in the page; a rejection is told by its code. */
function call<T>(page: Page, work: (library: LibraryApi) => Promise<T>): Promise<T> {
  return page.evaluate(`(${work.toString()})(testLibrary.api)`) as Promise<T>;
}

async function golden(page: Page) {
  const { models } = await call(page, (library) => library.snapshot());
  const found = models.find(({ manifest }) => manifest.id === goldenId);
  if (!found) throw new Error('The golden model is not listed.');
  return found;
}

/** Slows the VAE down, so that there is a middle of its download. */
function slowVae(pauseMs = 100): void {
  hub.fail({
    fault: { kind: 'slow', pieceBytes: 32 * 1024, pauseMs },
    path: goldenPath('vae'),
    host: 'storage',
    fromByte: 1,
    times: 1000,
  });
}

async function untilVae(page: Page, bytesSent: number): Promise<void> {
  await expect
    .poll(() => hub.served(goldenPath('vae')).bytes, { timeout: 60_000 })
    .toBeGreaterThan(bytesSent);
  await page.waitForTimeout(50);
}

test('in Chromium a cut download ends whole, with every range kept through the redirect', async () => {
  const page = await openTab();
  await call(page, (library) => library.addModel({ address: 'kinora/tiny-wan' }));
  expect(goldenRepository).toBe('kinora/tiny-wan');
  for (const component of ['transformer', 'vae'] as const) {
    hub.fail({
      fault: { kind: 'cut', afterBytes: 100_000 },
      path: goldenPath(component),
      host: 'storage',
      fromByte: 1000,
    });
  }
  // SHA-256 runs in a thread of its own, which ends with the download.
  const threads = page.waitForEvent('worker', (worker) => worker.url().includes('hash'));
  await call(page, (library) => library.download('golden', 'int8'));
  const thread = await threads;
  expect(page.workers()).not.toContain(thread);
  const model = await golden(page);
  expect(model).toMatchObject({ ready: true, precision: 'int8' });
  const stored = hub.requests.filter(({ host, bytesSent }) => host === 'storage' && bytesSent > 0);
  expect(stored.length).toBeGreaterThan(5);
  expect(stored.every(({ range, status }) => range !== null && status === 206)).toBe(true);
  for (const component of ['transformer', 'vae'] as const) {
    expect(hub.served(goldenPath(component)).bytesTwice).toBe(0);
  }
  await call(page, (library) => library.verify('golden'));
  expect((await golden(page)).ready).toBe(true);

  hub.forget();
  await page.reload();
  await start(page);
  expect((await golden(page)).ready).toBe(true);
  expect(hub.requests).toEqual([]);
}, 120_000);

test('a quota that is used up pauses the download; with more of it, it goes on', async () => {
  const page = await openTab();
  await call(page, (library) => library.addModel({ address: 'kinora/tiny-wan' }));
  const { store } = await call(page, (library) => library.planDownload('golden', 'int8'));
  const browserOf = await context.newCDPSession(page);
  const { usage } = await browserOf.send('Storage.getUsageAndQuota', { origin });
  const limit = (quotaSize?: number) =>
    browserOf.send('Storage.overrideQuotaForOrigin', {
      origin,
      ...(quotaSize === undefined ? {} : { quotaSize }),
    });
  // At the start there is room enough; then something else takes it.
  hub.fail({
    fault: { kind: 'slow', pieceBytes: 64 * 1024, pauseMs: 20 },
    path: goldenPath('vae'),
    host: 'storage',
    fromByte: 1,
    times: 1000,
  });
  const downloading = call(page, (library) => library.download('golden', 'int8'));
  await untilVae(page, 300_000);
  await limit(Math.round(usage + store / 2));
  await downloading;
  const { parts } = await golden(page);
  expect(parts).toContainEqual(
    expect.objectContaining({
      status: 'paused',
      pausedBy: 'storage',
      error: expect.objectContaining({ code: 'STORAGE_FULL' }),
    }),
  );
  hub.heal();
  await limit();
  await call(page, (library) => library.resume('golden'));
  expect((await golden(page)).ready).toBe(true);
  expect(hub.served(goldenPath('transformer')).bytesTwice).toBe(0);
}, 120_000);

test('a reload in the middle leaves it paused; resumed, it goes on', async () => {
  const page = await openTab();
  await call(page, (library) => library.addModel({ address: 'kinora/tiny-wan' }));
  slowVae();
  const downloading = call(page, (library) => library.download('golden', 'int8'));
  downloading.catch(() => undefined); // The page goes away under it.
  await untilVae(page, 500_000);
  await page.reload();
  hub.heal();
  await start(page);
  const { parts, ready } = await golden(page);
  expect(ready).toBe(false);
  expect(parts).toContainEqual(
    expect.objectContaining({ component: 'vae', status: 'paused', pausedBy: 'interrupted' }),
  );
  await call(page, (library) => library.resume('golden'));
  expect((await golden(page)).ready).toBe(true);
  expect(hub.served(goldenPath('transformer')).bytesTwice).toBe(0);
}, 120_000);

test('two tabs share one download', async () => {
  const first = await openTab();
  await call(first, (library) => library.addModel({ address: 'kinora/tiny-wan' }));
  // Slow enough for another tab to open meanwhile.
  slowVae(500);
  const downloading = call(first, (library) => library.download('golden', 'int8'));
  await untilVae(first, 200_000);
  const second = await openTab();
  await expect.poll(async () => (await golden(second)).elsewhere, { timeout: 30_000 }).toBe(true);
  await expect(call(second, (library) => library.download('golden', 'int8'))).rejects.toThrow(
    'another tab',
  );
  await first.close();
  downloading.catch(() => undefined);
  hub.heal();
  await expect.poll(async () => (await golden(second)).elsewhere, { timeout: 30_000 }).toBe(false);
  await call(second, (library) => library.resume('golden'));
  expect((await golden(second)).ready).toBe(true);
}, 120_000);

test('two tabs that add the same LoRA fetch it once', async () => {
  const bytes = await goldenBytes('loras/b_lightx2v_diff_b.safetensors');
  hub.repositories.put('kinora/both', 'both.safetensors', bytes);
  const [first, second] = [await openTab(), await openTab()];
  const slow = { kind: 'slow', pieceBytes: 4096, pauseMs: 100 } as const;
  hub.fail({ fault: slow, path: 'both.safetensors', host: 'storage', skip: 4, times: 100 });
  const add = (page: Page) => call(page, (library) => library.addLora({ address: 'kinora/both' }));
  const both = await Promise.allSettled([add(first), add(second)]);
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  const refused = both.find((one) => one.status === 'rejected');
  expect(String(refused?.reason)).toMatch(/being added already/);
  await expect
    .poll(async () => {
      const snapshots = [first, second].map((page) => call(page, (library) => library.snapshot()));
      return (await Promise.all(snapshots)).map(({ loras }) => loras.length);
    })
    .toEqual([1, 1]);
}, 120_000);

test('a LoRA of the hub is kept, and opened by its name on the page', async () => {
  const bytes = await goldenBytes('loras/a_kohya_alpha.safetensors');
  hub.repositories.put('kinora/lora', 'a style.safetensors', bytes);
  const page = await openTab();
  const entry = await call(page, (library) => library.addLora({ address: 'kinora/lora' }));
  expect(entry).toMatchObject({ name: 'a style.safetensors', bytes: bytes.length });
  const size = await page.evaluate(async () => {
    const file = await testLibrary.openLora('a style.safetensors');
    return file.size;
  });
  expect(size).toBe(bytes.length);
}, 120_000);
