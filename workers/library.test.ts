/** @module-tag full */

import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright';
import { createServer, type ViteDevServer } from 'vite';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { testLaunchOptions } from '../lib/cli/browser/launch';
import type { LibraryApi } from '../lib/contract/library';
import {
  goldenBytes,
  goldenId,
  goldenPath,
  goldenRepository,
  publishGoldenModel,
} from '../lib/models/wan22/testing/golden-model';
import { type LocalHub, startHub } from '../lib/weights/testing/hub/server';

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
    root: fileURLToPath(new URL('../', import.meta.url)),
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
  await page.addScriptTag({ type: 'module', url: '/workers/testing/library-page.ts' });
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

/** Holds the VAE up in the middle of its download, until the hub is healed. */
function holdVae(): void {
  hub.fail({
    fault: { kind: 'held', afterBytes: 60_000 },
    path: goldenPath('vae'),
    host: 'storage',
    // Its first range gets through.
    fromByte: 400_000,
    times: 1000,
  });
}

/** Waits until the parts before the VAE are there, and that is in its middle. */
async function untilVae(page: Page): Promise<void> {
  const before = async () =>
    (await golden(page)).parts
      .filter(({ component }) => ['transformer', 'text_encoder'].includes(component))
      .map(({ status }) => status);
  await expect.poll(before, { timeout: 60_000 }).toEqual(['complete', 'complete']);
  await expect
    .poll(() => hub.served(goldenPath('vae')).bytes, { timeout: 60_000 })
    .toBeGreaterThan(600_000);
}

test('in Chromium a cut download ends whole, with every range kept through the redirect', async () => {
  const page = await openTab();
  await call(page, (library) => library.addModel({ address: 'kinora/tiny-wan' }));
  expect(goldenRepository).toBe('kinora/tiny-wan');
  const cut = { kind: 'cut', afterBytes: 100_000 } as const;
  for (const component of ['transformer', 'vae'] as const) {
    hub.fail({
      fault: cut,
      path: goldenPath(component),
      host: 'storage',
      fromByte: 1000,
    });
  }
  // SHA-256 runs in a thread of its own, which ends with the download.
  const threads = page.waitForEvent('worker', (worker) => worker.url().includes('hash'));
  await call(page, (library) => library.download('golden', 'int8'));
  const thread = await threads;
  await expect.poll(() => page.workers(), { timeout: 30_000 }).not.toContain(thread);
  const model = await golden(page);
  expect(model).toMatchObject({ ready: true, precision: 'int8' });
  const stored = hub.requests.filter(({ host, bytesSent }) => host === 'storage' && bytesSent > 0);
  expect(stored.length).toBeGreaterThan(5);
  expect(stored.every(({ range, status }) => range !== null && status === 206)).toBe(true);
  for (const component of ['transformer', 'vae'] as const) {
    // Of what had come, the browser drops what the page has not read when the cut comes.
    expect(hub.served(goldenPath(component)).bytesTwice).toBeLessThanOrEqual(cut.afterBytes);
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
  const browserOf = await context.newCDPSession(page);
  const { usage } = await browserOf.send('Storage.getUsageAndQuota', { origin });
  const limit = (quotaSize?: number) =>
    browserOf.send('Storage.overrideQuotaForOrigin', {
      origin,
      ...(quotaSize === undefined ? {} : { quotaSize }),
    });
  // At the start there is room enough; then something else takes it.
  holdVae();
  const downloading = call(page, (library) => library.download('golden', 'int8'));
  await untilVae(page);
  await limit(usage + 1);
  hub.heal();
  await downloading;
  const { parts } = await golden(page);
  expect(parts).toContainEqual(
    expect.objectContaining({
      status: 'paused',
      pausedBy: 'storage',
      error: expect.objectContaining({ code: 'STORAGE_FULL' }),
    }),
  );
  await limit();
  await call(page, (library) => library.resume('golden'));
  expect((await golden(page)).ready).toBe(true);
  expect(hub.served(goldenPath('transformer')).bytesTwice).toBe(0);
}, 120_000);

test('a reload in the middle leaves it paused; resumed, it goes on', async () => {
  const page = await openTab();
  await call(page, (library) => library.addModel({ address: 'kinora/tiny-wan' }));
  holdVae();
  const downloading = call(page, (library) => library.download('golden', 'int8'));
  downloading.catch(() => undefined); // The page goes away under it.
  await untilVae(page);
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
  holdVae();
  const downloading = call(first, (library) => library.download('golden', 'int8'));
  downloading.catch(() => undefined); // The page goes away under it.
  await untilVae(first);
  const second = await openTab();
  await expect
    .poll(async () => (await golden(second)).elsewhere, { timeout: 30_000 })
    .toMatchObject({ bytesTotal: expect.any(Number) });
  await expect(call(second, (library) => library.download('golden', 'int8'))).rejects.toThrow(
    'another tab',
  );
  await first.close();
  hub.heal();
  await expect.poll(async () => (await golden(second)).elsewhere, { timeout: 30_000 }).toBeNull();
  await call(second, (library) => library.resume('golden'));
  expect((await golden(second)).ready).toBe(true);
}, 120_000);

test('two tabs that add the same LoRA fetch it once', async () => {
  const bytes = await goldenBytes('loras/b_lightx2v_diff_b.safetensors');
  hub.repositories.put('kinora/both', 'both.safetensors', bytes);
  const [first, second] = [await openTab(), await openTab()];
  // Behind its header, whoever comes first is held up until the other has been refused.
  const held = { kind: 'held', afterBytes: 40_000 } as const;
  hub.fail({ fault: held, path: 'both.safetensors', host: 'storage', times: 100 });
  const add = (page: Page) =>
    call(page, (library) => library.addLora({ address: 'kinora/both' })).then(
      () => 'added',
      (reason: unknown) => String(reason),
    );
  const both = [add(first), add(second)];
  expect(await Promise.race(both)).toMatch(/being added already/);
  hub.heal();
  expect((await Promise.all(both)).filter((one) => one === 'added')).toHaveLength(1);
  await expect
    .poll(
      async () => {
        const snapshots = [first, second].map((page) =>
          call(page, (library) => library.snapshot()),
        );
        return (await Promise.all(snapshots)).map(({ loras }) => loras.length);
      },
      { timeout: 30_000 },
    )
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
