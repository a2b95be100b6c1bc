import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type BrowserContext, chromium, type Page } from 'playwright';
import send from 'send';
import { testLaunchOptions } from '../lib/cli/browser/launch';
import { startServer } from '../lib/cli/dev/app-server';
import { exportApp } from '../lib/cli/dev/export-app';
import { quickChecker } from '../lib/contract';
import { goldenRepository } from '../lib/models/wan/testing/golden-model';
import { ModelsPage } from './pages/models-page';
import { StudioPage } from './pages/studio-page';
import { type AppFront, startFront } from './support/app-front';
import {
  test as base,
  expect,
  expectAccessible,
  full,
  payload,
  picture,
  picturePath,
  withSilentConsole,
} from './support/fixtures';
import { acceptTerms } from './support/terms';

/** A browser with a profile, which can be closed and started again. */
class Installed {
  context!: BrowserContext;
  page!: Page;
  constructor(readonly profile: string) {}

  async start(): Promise<void> {
    const { args = [], ...options } = await testLaunchOptions();
    this.context = await chromium.launchPersistentContext(this.profile, {
      ...options,
      // Pages that a program drives store nothing.
      args: [...args, '--disable-blink-features=AutomationControlled'],
      locale: 'en-GB',
    });
    this.page = this.context.pages()[0] ?? (await this.context.newPage());
  }

  /** Waits until the app is stored in this browser. */
  async stored(): Promise<void> {
    await this.page.evaluate(async () => {
      await navigator.serviceWorker.ready;
    });
  }
}

const test = base.extend<{ installed: Installed; front: AppFront }>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright wants a pattern, even an empty one.
  installed: async ({}, use, testInfo) => {
    const installed = new Installed(await mkdtemp(testInfo.outputPath('profile-')));
    await installed.start();
    await use(installed);
    await installed.context.close();
  },
  front: async ({ baseURL }, use) => {
    const front = await startFront(baseURL ?? '');
    await use(front);
    await front.stop().catch(() => {});
  },
});

const prompt = 'A lantern swings in the wind';

/** Starts a run on the CPU. */
async function startRun(page: Page, steps: number): Promise<StudioPage> {
  const studio = new StudioPage(page);
  await studio.fill({ image: picturePath, prompt, steps });
  await studio.chooseCpu();
  await studio.generate();
  return studio;
}

/** SHA-256 of what a path of the app answers. */
function sha256Of(page: Page, path: string): Promise<string> {
  return page.evaluate(async (path) => {
    const bytes = await (await fetch(path)).arrayBuffer();
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
    return [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  }, path);
}

/** Sends a file to the app as a system does that shares it: as a form, by POST. */
async function share(page: Page, file: string, action = '/share'): Promise<void> {
  await page.evaluate((to) => {
    document.body.insertAdjacentHTML(
      'beforeend',
      `<form id="share" action="${to}" method="post" enctype="multipart/form-data">` +
        '<input type="file" name="files"></form>',
    );
  }, action);
  await page.locator('#share input').setInputFiles(file);
  await Promise.all([
    page.waitForEvent('load'),
    page.evaluate(() => document.querySelector<HTMLFormElement>('#share')?.submit()),
  ]);
}

/**
 * Opens the app with a file, as a system does that has it in `file_handlers`. Only the queue is ours: a
 * browser without a desktop cannot be asked to open a file with an app.
 */
async function openWith(page: Page, picture: string): Promise<void> {
  await page.addInitScript(() => {
    const launchQueue = {
      setConsumer(consume: (launch: { files: FileSystemFileHandle[] }) => void) {
        const open = async () => {
          if (sessionStorage.getItem('opened')) return;
          sessionStorage.setItem('opened', 'once');
          const root = await navigator.storage.getDirectory();
          consume({ files: [await root.getFileHandle('opened.png')] });
        };
        void open();
      },
    };
    Object.defineProperty(window, 'launchQueue', { value: launchQueue });
  });
  await page.evaluate(async (path) => {
    const root = await navigator.storage.getDirectory();
    const file = await root.getFileHandle('opened.png', { create: true });
    const response = await fetch(path);
    await response.body?.pipeTo(await file.createWritable());
  }, picture);
  await page.reload();
}

/**
 * Lets the page look for a new version.
 *
 * @returns the state of its service worker once it is installed or has failed; `none` where there is none
 */
function lookForUpdate(page: Page): Promise<string> {
  return page.evaluate(async () => {
    const registration = await navigator.serviceWorker.ready;
    // The server is stopped.
    await registration.update().catch(() => {});
    const worker = registration.installing;
    if (!worker) return registration.waiting?.state ?? 'none';
    return new Promise<string>((resolve) => {
      worker.addEventListener('statechange', () => resolve(worker.state));
    });
  });
}

test(
  'with the server stopped the app starts cold, computes and says what needs a server',
  full,
  async ({ installed }) => {
    const app = await startServer();
    const { origin } = app;
    await installed.page.goto(origin);
    await installed.stored();
    const devtools = await installed.context.newCDPSession(installed.page);
    const { errors, url } = await devtools.send('Page.getAppManifest');
    expect([new URL(url).pathname, errors]).toEqual(['/manifest.json', []]);
    await expect(installed.page.getByRole('button', { name: 'Install' })).toBeVisible();
    await app.stop();
    await installed.context.close();
    await installed.start();
    const { page } = installed;
    await installed.context.setOffline(true);
    await withSilentConsole(page, async () => {
      await page.goto(origin);
      expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
      await openWith(page, '/app/icon-192.png');
      await expect(page.getByRole('img', { name: /^Start image: opened\.png/ })).toBeVisible();
      await share(page, picturePath);
      await page.getByRole('button', { name: 'Use it' }).click();
      await expect(page.getByRole('img', { name: /^Start image: image\.png/ })).toBeVisible();
      // What becomes of the quick checker shows only in the result, which takes a minute.
      for (const { file, sha256 } of [quickChecker.weights, quickChecker.tensors]) {
        expect(await sha256Of(page, `/nsfwjs/${file}`)).toBe(sha256);
      }
      // By the first step every file of the bundled model was read.
      const studio = await startRun(page, 8);
      await studio.waitForStep(1, 8);
      await page.getByRole('link', { name: 'Models' }).click();
      await expect(page.getByRole('heading', { name: 'Models', level: 1 })).toBeVisible();
      await page.getByRole('link', { name: 'Studio' }).click();
      await studio.cancel();
      await page.getByRole('link', { name: 'API', exact: true }).click();
      await page.getByRole('link', { name: 'Docs' }).click();
      await expect(page.getByRole('heading', { name: 'The v3 API' })).toBeVisible();
      await page.getByRole('link', { name: 'Help' }).click();
      await expect(page.getByRole('heading', { name: 'When something fails' })).toBeVisible();
      // Pages that only the server has, and one that nobody has.
      for (const path of ['/s/0123456789abcdef', '/api/v3/models', '/metrics', '/somewhere']) {
        await page.goto(origin + path);
        await expect(page.getByRole('heading', { name: 'No connection' })).toBeVisible();
      }
      await expectAccessible(page);
      await page.goto(`${origin}//models`);
      await expect(page.getByRole('heading', { name: 'Models', level: 1 })).toBeVisible();
      expect(page.url()).toBe(`${origin}/models`);
    });
    // Browsers write a refused connection to the console.
    await page.goto(`${origin}/keys`);
    await page.getByLabel('Admin key or sign-in link').fill('a key');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expect(page.getByText('The server does not respond.')).toBeVisible();
  },
);

test(
  'a server that does not answer keeps nobody waiting for the sizes of a download',
  full,
  async ({ page, front }) => {
    await page.goto(`${front.origin}/models`);
    const button = page.getByRole('button', { name: 'Download', exact: true });
    await expect(button).toBeVisible();
    front.silent = true;
    await button.click();
    const dialog = page.getByRole('dialog');
    await expect(dialog.getByText('Asking for the size')).toBeVisible();
    await expect(dialog.getByText('The hub cannot be reached.')).toBeVisible();
    await expect(dialog.getByText('Asking for the size')).toHaveCount(0);
    await dialog.getByRole('button', { name: 'Try again' }).click();
    await expect(dialog.getByText('Asking for the size')).toBeVisible();
  },
);

test(
  'files that a website or another app sends replace nothing without a question',
  full,
  async ({ installed, baseURL }) => {
    const { page } = installed;
    const origin = baseURL ?? '';
    const studio = new StudioPage(page);
    const question = page.getByRole('region', { name: 'Shared with Kinora' });
    const replaced = page.getByRole('region', { name: 'Undo the last change' });
    const image = (name: string) => page.getByRole('img', { name: `Start image: ${name}` });
    const own = payload('own.png', picture());
    // Another site: `localhost` is not 127.0.0.1. It hides where its form comes from.
    const site = createServer((_request, response) => {
      response
        .writeHead(200, { 'Content-Type': 'text/html', 'Referrer-Policy': 'no-referrer' })
        .end('<!doctype html><title>Another site</title><link rel="icon" href="data:,">');
    }).listen(0, '127.0.0.1');
    await once(site, 'listening');
    const sendFrom = async () => {
      await page.goto(`http://localhost:${(site.address() as AddressInfo).port}`);
      await share(page, picturePath, `${origin}/share`);
      await expect(page).toHaveURL(new RegExp(`^${origin}/`));
    };

    await withSilentConsole(page, async () => {
      await page.goto(origin);
      await installed.stored();
      await studio.fill({ image: own, prompt, steps: 5 });
      await sendFrom();
      await expect(question).toContainText('image.png');
      await expect(question).toContainText(prompt);
      await expect(image('own.png')).toBeVisible();
      await expectAccessible(page);
      await question.getByRole('button', { name: 'Discard' }).click();
      await expect(question).toHaveCount(0);
      await expect(image('own.png')).toBeVisible();
      await page.reload();
      await expect(image('own.png')).toBeVisible();
      await expect(question).toHaveCount(0);

      await sendFrom();
      await question.getByRole('button', { name: 'Use it' }).click();
      await expect(image('image.png')).toBeVisible();
      await expect(replaced).toContainText(prompt);
      await replaced.getByRole('button', { name: 'Undo' }).click();
      await expect(image('own.png')).toBeVisible();
      await expect(studio.prompt).toHaveValue(prompt);
      await expect(studio.steps).toHaveValue('5');

      const devtools = await installed.context.newCDPSession(page);
      await devtools.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: 1 });
      await sendFrom();
      await expect(page.locator('[data-code="SHARED_FILES_LOST"]')).toBeVisible();
      await expect(image('own.png')).toBeVisible();
      expect(page.url()).toBe(`${origin}/`);
    });
    site.close();
  },
);

test(
  'an installed model works without network, and an update switches as a whole',
  full,
  async ({ installed, front, hub }) => {
    const { page } = installed;
    const studio = new StudioPage(page);
    const version = () => page.locator('html').getAttribute('data-version');
    const update = page.getByRole('button', { name: 'Update', exact: true });
    const builds = () =>
      page.evaluate(async () =>
        (await caches.keys()).filter((name) => name.startsWith('kinora-app-')),
      );
    /** Brings a version to the server and lets the page look for it, as it does from time to time. */
    const publish = async (number: number) => {
      front.version = number;
      await lookForUpdate(page);
    };

    await withSilentConsole(page, async () => {
      await test.step('the first visit stores the app, a model is installed', async () => {
        const models = new ModelsPage(page);
        await page.goto(`${front.origin}/models`);
        await acceptTerms(page);
        await models.setHub(hub.url);
        await models.addFromHub(goldenRepository);
        await models.confirmDownload();
        await models.waitForStatus(models.model('Golden'), 'Ready');
        await installed.stored();
        await hub.close();
      });

      await test.step('a new version waits, and is not taken in the middle of a run', async () => {
        await page.goto(front.origin);
        await publish(2);
        await expect(update).toBeVisible();
        const mark = page.locator('.top-more');
        const sign = () => mark.evaluate((button) => getComputedStyle(button, '::after').content);
        const size = page.viewportSize();
        await page.setViewportSize({ width: 390, height: 800 });
        expect(await sign(), 'on a phone, where the button lies in a menu').toContain('●');
        if (size) await page.setViewportSize(size);
        await expectAccessible(page);
        await page.reload();
        expect(await version()).toBe(null);
        // Its steps take long enough for what follows.
        await page.getByRole('combobox', { name: 'Model' }).selectOption('mini');
        await startRun(page, 8);
        await studio.waitForStep(1, 8);
        await update.click();
        await expect(page.getByText('Kinora is at work.')).toBeVisible();
        await studio.waitForStep(3, 8);
        await studio.cancel();
      });

      await test.step('nor while another tab has the old one', async () => {
        const other = await installed.context.newPage();
        await other.goto(`${front.origin}/terms`);
        await update.click();
        await expect(page.getByText('Close the other tabs')).toBeVisible();
        await other.close();
        expect(await version()).toBe(null);
      });

      await test.step('Update loads the page of the new version, and the old one is gone', async () => {
        const [old] = await builds();
        front.asked.length = 0;
        await Promise.all([page.waitForEvent('load'), update.click()]);
        expect(await version()).toBe('2');
        await expect(update).toHaveCount(0);
        await expect.poll(builds).toHaveLength(1);
        expect(await builds()).not.toContain(old);
        // The page and what it loads came from the cache.
        expect(front.asked.filter((path) => !path.includes('sw.js'))).toEqual([]);
      });
    });
    await installed.context.close();
    await front.stop();

    await test.step('the server is stopped: a cold start makes a video with the installed model', async () => {
      await installed.start();
      await installed.page.goto(front.origin);
      expect(await installed.page.locator('html').getAttribute('data-version')).toBe('2');
      await withSilentConsole(installed.page, async () => {
        await installed.page.getByRole('combobox', { name: 'Model' }).selectOption('Golden');
        const offline = await startRun(installed.page, 1);
        await offline.waitForResult();
        expect((await offline.play()).width).toBe(1280);
        await expect(offline.verdict).toContainText(/ by Marqo/);
      });
    });

    await test.step('a version that does not arrive whole changes nothing; the next one does', async () => {
      const { page } = installed;
      await front.start();
      // The one page that differs: the others are copied.
      front.broken = '/';
      front.version = 3;
      expect(await lookForUpdate(page)).toBe('redundant');
      const now = page.getByRole('button', { name: 'Update', exact: true });
      await expect(now).toHaveCount(0);
      front.broken = null;
      expect(await lookForUpdate(page)).toBe('installed');
      await Promise.all([page.waitForEvent('load'), now.click()]);
      await front.stop();
      await page.reload();
      expect(await page.locator('html').getAttribute('data-version')).toBe('3');
      await expect(page.getByText(prompt)).not.toHaveCount(0);
    });
  },
);

test(
  'a static export works from a folder of a plain host, and then without it',
  full,
  async ({ installed }, testInfo) => {
    // A build of its own.
    test.slow();
    const folder = testInfo.outputPath('export');
    await exportApp(folder, '/kinora');
    const host = await startStaticHost(folder, '/kinora');
    const home = `${host.origin}/kinora/`;
    const menu = ['Models', 'API', 'Serve', 'Keys', 'Docs', 'Settings'];
    /** Every page by the menu, and what the examples and the reference load. */
    const visitAll = async (page: Page) => {
      for (const name of menu) {
        await page.getByRole('link', { name, exact: true }).first().click();
        await expect(page).toHaveURL(`${home}${name === 'API' ? 'serve' : name.toLowerCase()}/`);
        await page.reload();
        await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
        if (name === 'Serve' || name === 'Keys') {
          await expect(page.getByText('This needs Kinora’s server')).toBeVisible();
        }
      }
      await page.goto(`${home}docs/api/`);
      await expect(
        page.getByRole('heading', { name: /Submit|predictions/i }).first(),
      ).toBeVisible();
      await page.goto(home);
      await page.getByRole('button', { name: 'Examples' }).click();
      await page.getByRole('button', { name: 'Lighthouse' }).click();
      await expect(page.getByRole('img', { name: /^Start image: lighthouse/ })).toBeVisible();
    };
    await withSilentConsole(installed.page, async () => {
      const { page } = installed;
      await page.goto(home);
      await installed.stored();
      const devtools = await installed.context.newCDPSession(page);
      const { errors, url, data = '' } = await devtools.send('Page.getAppManifest');
      expect([new URL(url).pathname, errors]).toEqual(['/kinora/manifest.json', []]);
      const { start_url, share_target, icons } = JSON.parse(data);
      const paths = [
        start_url,
        share_target.action,
        ...icons.map(({ src }: { src: string }) => src),
      ].map((path: string) => new URL(path, url).pathname);
      expect(paths.filter((path: string) => !path.startsWith('/kinora/'))).toEqual([]);
      await visitAll(page);
    });
    // Nothing was asked for outside of the folder.
    expect(host.strays).toEqual([]);
    await host.stop();
    await installed.context.close();
    await installed.start();
    const { page } = installed;
    await withSilentConsole(page, async () => {
      await page.goto(`${home}models/`);
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
      await share(page, picturePath, '/kinora/share');
      await page.getByRole('button', { name: 'Use it' }).click();
      expect(page.url()).toBe(home);
      await page.goto(`${home}somewhere`);
      await expect(page.getByRole('heading', { name: 'No connection' })).toBeVisible();
    });
  },
);

/**
 * What a plain static host does: files of a folder, `index.html` for folders.
 *
 * @param below path of the folder at which it has them
 */
async function startStaticHost(folder: string, below = '') {
  const strays: string[] = [];
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://host');
    if (!pathname.startsWith(`${below}/`)) {
      strays.push(pathname);
      response.writeHead(404).end();
      return;
    }
    send(request, pathname.slice(below.length), { root: folder })
      .on('directory', () => response.writeHead(301, { Location: `${pathname}/` }).end())
      .pipe(response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    strays,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
