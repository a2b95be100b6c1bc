import { execFileSync } from 'node:child_process';
import { openAsBlob } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { type Browser, type BrowserContext, chromium } from 'playwright';
import { testLaunchOptions } from '../lib/cli/browser/launch';
import { inspectVideo } from '../lib/video/inspect';
import { StudioPage } from './pages/studio-page';
import { startCommand } from './support/command';
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
  await expect(studio.stepLine(6)).toBeVisible({ timeout: 240_000 });
  await studio.waitForStep(3, 6);
}

test(
  'a run whose GPU process ends goes on by itself from its newest state',
  full,
  async ({ page, context }) => {
    test.slow();
    const studio = new StudioPage(page);
    await startOnGpu(studio);
    await killGpu(context);
    await studio.waitForStep(4, 6);
    await studio.waitForResult();
    await expect(studio.result).toContainText('once, after an interruption');
    expect((await studio.play()).width).toBe(1280);
  },
);

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

test(
  'an API job whose GPU process ends is completed in its first attempt',
  full,
  async ({ serve, context, caller, workerToken }) => {
    test.slow();
    await serve.connect(workerToken, { backend: 'WebGPU' });
    await serve.waitFor('idle');
    const id = await caller.submit({ num_inference_steps: 6 });
    await expect(serve.connection.getByText(/^Step [345] of 6$/)).toBeVisible({ timeout: 120_000 });
    await killGpu(context);
    await expect(serve.line(id)).toContainText('Done', { timeout: 240_000 });
    await expect(serve.line(id)).not.toContainText('attempt 2');
    expect((await caller.result(id)).status).toBe('completed');
  },
);

test('npm run generate goes on when the GPU process of its browser ends', full, async () => {
  test.slow();
  const args = ['--model', 'tiny', '--backend', 'webgpu', '--steps', '6'];
  const run = await startCommand('generate', args, test.info().outputPath('run'));
  await expect.poll(run.stdout, { timeout: 300_000, intervals: [50] }).toContain('step 3 of 6');
  process.kill(gpuProcessBelow(run.pid), 'SIGKILL');
  const before = run.stdout().length;
  expect(await run.code, run.stderr()).toBe(0);
  const [name = ''] = await readdir(path.join(run.folder, 'out'));
  const video = await inspectVideo(await openAsBlob(path.join(run.folder, 'out', name)));
  expect(video).toMatchObject({ width: 1280, frames: 121 });
  const after = run.stdout().slice(before);
  expect(after).toContain('step 6 of 6');
  expect(after).not.toContain('step 1 of 6');
});

/** The GPU process of the browser that a command has started. */
function gpuProcessBelow(pid: number): number {
  const rows = execFileSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\n');
  const processes = rows.map((row) => {
    const [id, parent, ...args] = row.trim().split(/\s+/);
    return { id: Number(id), parent: Number(parent), args };
  });
  const isBelow = (id: number): boolean => {
    const parent = processes.find((each) => each.id === id)?.parent;
    return id === pid || (parent !== undefined && parent > 1 && isBelow(parent));
  };
  const gpu = processes.find(({ id, args }) => args.includes('--type=gpu-process') && isBelow(id));
  if (!gpu) throw new Error('the command has no GPU process');
  return gpu.id;
}
