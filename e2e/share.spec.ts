import type { Share } from '../lib/contract/v3';
import { ProtocolWorker } from '../relay/testing/protocol-worker';
import { KeysPage } from './pages/keys-page';
import { StudioPage } from './pages/studio-page';
import type { ApiCaller } from './support/api-caller';
import { expectAccessible, full, picturePath } from './support/fixtures';
import { expect, test } from './support/serve-fixtures';

/** A link to a finished prediction. */
async function shared(caller: ApiCaller, workerToken: string, include: object): Promise<Share> {
  const id = await caller.submit();
  const worker = new ProtocolWorker({ origin: caller.origin, token: workerToken });
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
  'a video of the studio is uploaded when signed in, watched by its link, and taken back',
  full,
  async ({ browser, page, caller }) => {
    await new KeysPage(page).openLink(await caller.signInToken());
    const studio = new StudioPage(page);
    await studio.open();
    await studio.fill({ image: picturePath, prompt: 'A shared boat', steps: 1 });
    await studio.chooseCpu();
    await studio.generate();
    await studio.waitForResult();

    await studio.result.getByRole('button', { name: 'Share', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Share this video' });
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      dialog.getByRole('button', { name: 'Download the file' }).click(),
    ]);
    expect(file.suggestedFilename()).toMatch(/^kinora-.*\.mp4$/);
    await test.step('accessibility', () => expectAccessible(page));
    await dialog.getByLabel('Show the settings').uncheck();
    await dialog.getByRole('button', { name: 'Upload and make a link' }).click();
    const link = dialog.getByRole('link', { name: /\/s\// });
    await expect(link).toHaveText(/\/s\/[0-9a-f]{32}$/);
    const url = (await link.getAttribute('href')) ?? '';

    const clean = await (await browser.newContext()).newPage();
    await clean.goto(url);
    await expect(clean.getByRole('heading', { level: 1 })).toHaveText('A shared boat');
    await expect(clean.getByText('Seed')).toHaveCount(0);
    const video = clean.locator('video');
    await expect
      .poll(() =>
        video.evaluate(({ readyState, videoWidth }: HTMLVideoElement) => [
          readyState > 0,
          videoWidth,
        ]),
      )
      .toEqual([true, 1280]);

    await dialog.getByRole('button', { name: 'Delete it from the server' }).click();
    await expect(dialog.getByRole('button', { name: 'Upload and make a link' })).toBeVisible();
    expect((await clean.request.get(url)).status()).toBe(410);
    await clean.context().close();
  },
);
