import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright';
import { parseParameters, safetySchema } from '../lib/contract';
import type { Share } from '../lib/contract/v3';
import { sniffImage } from '../lib/video/sniff';
import { ProtocolWorker } from '../relay/testing/protocol-worker';
import { makeVideo } from '../relay/testing/video';
import { KeysPage } from './pages/keys-page';
import { StudioPage } from './pages/studio-page';
import type { ApiCaller } from './support/api-caller';
import { expectAccessible, full, picturePath } from './support/fixtures';
import { expect, test } from './support/serve-fixtures';
import { finishedRow, storePredictions } from './support/stored-videos';

/** A link to a finished prediction. */
async function shared(caller: ApiCaller, workerToken: string, include: object): Promise<Share> {
  const id = await caller.submit();
  const framed = await readFile(new URL('../public/samples/still.jpg', import.meta.url));
  const report = { pictures: { image: framed.toString('base64') } };
  const worker = new ProtocolWorker({ origin: caller.origin, token: workerToken, report });
  await worker.once(AbortSignal.timeout(30_000));
  const body = JSON.stringify({ include });
  return await caller.json<Share>('POST', `/api/v3/predictions/${id}/share`, body);
}

test(
  'the request of a shared video opens in the studio, until its owner revokes the link',
  full,
  async ({ caller, workerToken, context }) => {
    const everything = { prompt: true, settings: true, image: true };
    const { id, url } = await shared(caller, workerToken, everything);
    expect(url).toBe(`${caller.origin}/s/${id}`);
    const second = await context.newPage();
    const studio = new StudioPage(second);
    await second.goto(caller.origin);
    await studio.fill({ image: picturePath, prompt: 'My own words', steps: 3 });
    await second.goto(url);
    await test.step('accessibility', () => expectAccessible(second));
    await second.getByRole('link', { name: 'Open in Kinora' }).click();
    await expect(studio.prompt).toHaveValue('A lantern swings');
    await expect(await studio.field('Seed')).toHaveValue('7');
    await expect(second.getByRole('img', { name: 'Start image: shared image' })).toBeVisible();
    const replaced = second.getByRole('region', { name: 'Undo the last change' });
    await expect(replaced).toContainText('My own words');
    await test.step('accessibility of Undo', () => expectAccessible(second));
    await replaced.getByRole('button', { name: 'Undo' }).click();
    await expect(studio.prompt).toHaveValue('My own words');
    await expect(studio.steps).toHaveValue('3');
    await expect(second.getByRole('img', { name: 'Start image: image.png' })).toBeVisible();

    const keys = new KeysPage(second);
    await keys.openLink(await caller.signInToken());
    const line = keys.links.getByRole('listitem').filter({ hasText: id });
    await expect(line).toContainText('A lantern swings');
    await expect(line).toContainText('Video, prompt, settings, start image');
    await test.step('accessibility of the list', () => expectAccessible(second));
    await line.getByRole('button', { name: /^Revoke the link/ }).click();
    await keys.dialog.getByRole('button', { name: 'Revoke' }).click();
    await expect(line).toHaveCount(0);
    await expect(keys.links.getByRole('heading', { level: 2 })).toBeFocused();
    expect((await second.request.get(url)).status()).toBe(410);
  },
);

test(
  'other sites show no page of ours in a frame, but the player of a link',
  full,
  async ({ browser, caller, workerToken }) => {
    const { url } = await shared(caller, workerToken, {});
    const site = createServer((asked, response) => {
      const address = new URL(asked.url ?? '/', caller.origin).searchParams.get('page') ?? '';
      response.setHeader('Content-Type', 'text/html');
      response.end(`<title>Another site</title><iframe src="${address}"></iframe>`);
    }).listen(0, '127.0.0.1');
    try {
      await once(site, 'listening');
      const { port } = site.address() as AddressInfo;
      // Of its own, as a refused frame is written to the console.
      const context = await browser.newContext();
      const page = await context.newPage();
      const framed = async (address: string) => {
        await page.goto(`http://127.0.0.1:${port}/?page=${encodeURIComponent(address)}`);
        const frame = await (await page.$('iframe'))?.contentFrame();
        await frame?.waitForLoadState();
        return frame?.url();
      };
      const paths = ['/', '/models', '/settings', '/keys', '/serve', '/docs', '/docs/api', '/help'];
      for (const path of [...paths, '/terms', '/offline', '/no-such-page']) {
        const { headers } = await fetch(caller.origin + path);
        expect(headers.get('content-security-policy'), path).toContain("frame-ancestors 'none'");
      }
      for (const address of [`${caller.origin}/keys`, url]) {
        expect(await framed(address), address).toMatch(/^chrome-error:/);
      }
      expect(await framed(`${url}/embed`)).toBe(`${url}/embed`);
      await context.close();
    } finally {
      site.close();
    }
  },
);

/** Finished videos in the page's browser; the second one is flagged. */
async function storedVideos(page: Page): Promise<void> {
  const parameters = parseParameters({
    prompt: 'A kite over the pond',
    negative_prompt: 'rain',
    seed: 987_654_321,
    loras: [{ path: 'someone/secret-style', scale: 1 }],
  });
  const safety = safetySchema.parse({ status: 'flagged', score: 0.99, frames: [0.99] });
  const rows = [finishedRow(1, parameters), finishedRow(2, parameters, { safety })];
  await storePredictions(page, rows, await makeVideo());
}

test(
  'the file and the link of a video tell what is ticked, and nothing else, until it is taken back',
  full,
  async ({ browser, page, caller }) => {
    const studio = new StudioPage(page);
    await studio.open();
    await storedVideos(page);
    await studio.open();
    const cards = studio.history.getByRole('button', { name: 'A kite over the pond' });
    const secrets = ['A kite', 'rain', '987654321', 'secret-style'];
    const toldBy = (file: Buffer) => secrets.filter((secret) => file.includes(secret));
    const shareButton = studio.result.getByRole('button', { name: 'Share', exact: true });
    const dialog = page.getByRole('dialog', { name: 'Share this video' });
    const read = async (address: string) => await (await page.request.get(address)).body();
    const makeLink = async () => {
      await dialog.getByRole('button', { name: 'Upload and make a link' }).click();
      return (await dialog.getByRole('link', { name: /\/s\// }).getAttribute('href')) ?? '';
    };
    const close = () => dialog.getByRole('button', { name: 'Close', exact: true }).click();

    await test.step('signing in leads back to the dialog', async () => {
      await cards.first().click();
      await shareButton.click();
      await dialog.getByRole('link', { name: 'Sign in' }).click();
      await expect(new KeysPage(page).signIn).toBeVisible();
      // The link of the terminal opens another tab.
      const tab = await page.context().newPage();
      await new KeysPage(tab).openLink(await caller.signInToken());
      await tab.close();
      await expect(dialog).toContainText('an address of this computer alone');
      expect(page.url()).toBe(`${caller.origin}/`);
      await close();
    });
    await studio.result.getByText(/ · seed 987654321 · /).click();
    await expect(studio.result.getByText('Inside a download')).toBeVisible();
    const download = await studio.download();
    expect(toldBy(await readFile(await download.path()))).toEqual(secrets);
    await shareButton.click();
    const fileTells = async () => {
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        dialog.getByRole('button', { name: 'Download the file' }).click(),
      ]);
      return toldBy(await readFile(await file.path()));
    };
    expect(await fileTells()).toEqual(['A kite', 'rain', '987654321']);
    await dialog.getByLabel('Show the settings').uncheck();
    expect(await fileTells()).toEqual(['A kite', 'rain']);
    await dialog.getByLabel('Show the prompt').uncheck();
    expect(await fileTells()).toEqual([]);

    const url = await makeLink();
    expect(url).toMatch(/\/s\/[0-9a-f]{32}$/);
    await expect(dialog).toContainText('Others cannot open this link');
    expect(toldBy(await read(`${url}/video.mp4`))).toEqual([]);
    await test.step('anybody can watch it', async () => {
      const context = await browser.newContext();
      const visitor = await context.newPage();
      await visitor.goto(url);
      await expect(visitor.locator('video')).toHaveJSProperty('videoWidth', 1280);
      await expect(visitor.getByText('Seed')).toHaveCount(0);
      await context.close();
    });
    expect((await read(url)).toString()).toContain(
      `<meta property="og:image" content="${url}/poster">`,
    );
    expect(await sniffImage(await read(`${url}/poster`))).toMatchObject({
      format: 'jpeg',
      width: 480,
      height: 270,
    });
    const oembed = await read(`/oembed?url=${encodeURIComponent(url)}`);
    expect(JSON.parse(oembed.toString())).toMatchObject({
      thumbnail_url: `${url}/poster`,
      thumbnail_width: 480,
      thumbnail_height: 270,
    });
    await close();
    await shareButton.click();
    await dialog.getByLabel('Show the settings').check();
    await dialog.getByLabel('Show the prompt').uncheck();
    expect(await makeLink()).toBe(url);
    expect(toldBy(await read(url))).toEqual(['987654321']);
    expect(toldBy(await read(`${url}/video.mp4`))).toEqual([]);
    await test.step('accessibility', () => expectAccessible(page));
    await dialog.getByRole('button', { name: 'Delete it from the server' }).click();
    await expect(dialog.getByRole('button', { name: 'Upload and make a link' })).toBeVisible();
    expect((await page.request.get(url)).status()).toBe(410);
    await close();

    await cards.last().click();
    await shareButton.click();
    const flagged = await makeLink();
    expect(flagged).not.toBe(url);
    expect((await read(flagged)).toString()).not.toContain('og:image');
    expect((await page.request.get(`${flagged}/poster`)).status()).toBe(404);
  },
);
