import { openAsBlob } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { inspectVideo } from '../lib/video/inspect';
import { StudioPage } from './pages/studio-page';
import { databaseRows } from './support/database';
import {
  expect,
  fixtureVideo,
  picture,
  picturePath,
  test,
  withFixtureModel,
} from './support/fixtures';

const prompt = 'A paper boat drifts over a quiet pond';

test('a still becomes a video: it plays, downloads and survives a reload', async ({
  studio,
  page,
  browser,
  baseURL,
}) => {
  const file = test.info().outputPath('video.mp4');

  await test.step('choose, describe, generate', async () => {
    await studio.chooseCpu();
    await studio.fill({ image: picturePath, prompt, steps: 2 });
    await studio.zoom.fill('2.5');
    await studio.frame.press('ArrowRight');
    await (await studio.field('Negative prompt')).fill('rain');
    await (await studio.field('Guidance')).fill('4.5');
    await (await studio.field('Seed')).fill('1234567890');
    await page.getByLabel('Loop').check();
    const endFile = { name: 'end.png', mimeType: 'image/png', buffer: picture() };
    await studio.lastImage.setInputFiles(endFile);
    const end = page.getByRole('img', { name: /^End image: end\.png/ });
    await expect(end).toBeVisible();
    // The video has one end.
    await expect(page.getByLabel('Loop')).toBeDisabled();
    await expect(page.getByLabel('Loop')).not.toBeChecked();
    // Shown before, it leaves the end to the loop.
    const second = page.getByLabel('Shown at');
    await second.fill('2.5');
    await expect(page.getByLabel('Loop')).toBeChecked();
    await second.fill('');
    await expect(page.getByLabel('Loop')).toBeDisabled();
    const swap = page.getByRole('button', { name: 'Swap' });
    await swap.click();
    await expect(page.getByRole('img', { name: /^Start image: end\.png/ })).toBeVisible();
    await swap.click();
    await expect(end).toBeVisible();
    await studio.generate();
  });

  await test.step('watch it', async () => {
    // Another video could be added to the queue.
    await expect(studio.generateButton).toBeEnabled();
    await expect(studio.progress.getByRole('progressbar')).toBeVisible();
    // Two steps of the tiny model pass between two looks at the page.
    await studio.progress.getByText(/^Frame \d+ of 41$/).waitFor({ timeout: 180_000 });
    await expect(page).toHaveTitle(/\d+% · Kinora/);
  });

  await test.step('the result plays', async () => {
    await studio.waitForResult();
    await expect(page).toHaveTitle('Kinora');
    await expect(studio.result.getByRole('heading')).toBeFocused();
    const { width, height, seconds } = await studio.play();
    expect({ width, height }).toEqual({ width: 1280, height: 720 });
    expect(Math.abs(seconds - 41 / 8)).toBeLessThan(0.05);
    await expect(studio.result).toContainText('1234567890');
    // A frame of the video: the start image is 320 pixels wide there.
    await expect(studio.history.locator('img')).toHaveJSProperty('naturalWidth', 480);
  });

  await test.step('the download is what it says', async () => {
    const download = await studio.download();
    expect(download.suggestedFilename()).toMatch(/\.mp4$/);
    await download.saveAs(file);
    // What is stored tells nothing; the download does.
    const stored = await page.evaluate(async () => {
      const root = await navigator.storage.getDirectory();
      const folder = await root.getDirectoryHandle('videos');
      const texts: string[] = [];
      for await (const name of folder.keys()) {
        texts.push(await (await (await folder.getFileHandle(name)).getFile()).text());
      }
      return texts;
    });
    expect(stored).toEqual([expect.stringMatching(/^....ftyp/s)]);
    expect(stored[0]).not.toMatch(/udta|kinora|seed|1234567890|paper boat/i);
    expect((await readFile(file)).includes(`"prompt":"${prompt}"`)).toBe(true);
    expect(await inspectVideo(await openAsBlob(file))).toMatchObject({
      ...fixtureVideo,
      frames: 41,
      codec: expect.stringMatching(/^avc1/),
      fastStart: true,
    });
  });

  await test.step('after a reload it is still there and plays', async () => {
    await studio.reload();
    await expect(studio.history.getByText(prompt)).toBeVisible();
    await studio.history.getByRole('button', { name: prompt }).click();
    expect((await studio.play()).width).toBe(1280);
  });

  await test.step('the MP4 brings its settings back', async () => {
    await studio.prompt.fill('something else');
    await (await studio.field('Steps')).fill('30');
    await page.locator('#last-image-field').getByRole('button', { name: 'Remove' }).click();
    await expect(page.getByLabel('Loop')).toBeChecked();
    await page.getByRole('button', { name: 'Fill', exact: true }).click();
    await studio.image.setInputFiles(file);
    await expect(page.getByText(/Settings restored from video\.mp4, with the image/)).toBeVisible();
    await expect(studio.prompt).toHaveValue(prompt);
    await expect(studio.steps).toHaveValue('2');
    await expect(page.getByRole('img', { name: /^End image/ })).toBeVisible();
    await expect(page.getByLabel('Loop')).toBeDisabled();
    await expect(studio.zoom).toHaveValue('2.5');
    await expect(await studio.field('Negative prompt')).toHaveValue('rain');
    await expect(await studio.field('Guidance')).toHaveValue('4.5');
    await expect(await studio.field('Seed')).toHaveValue('1234567890');
  });

  await test.step('in another browser it brings the video as well, and an empty form has no Undo', async () => {
    const context = await browser.newContext({ baseURL: baseURL ?? '' });
    await withFixtureModel(context);
    const other = new StudioPage(await context.newPage());
    await other.open();
    await other.image.setInputFiles(file);
    await expect(other.result.getByRole('heading')).toBeFocused();
    expect((await other.play()).width).toBe(1280);
    await expect(other.prompt).toHaveValue(prompt);
    await expect(other.page.getByRole('region', { name: 'Undo the last change' })).toHaveCount(0);
    await expect(other.history.getByText(prompt)).toBeVisible();
    await expect(other.result).toContainText(
      'The download holds your image and prompt; Share makes one without.',
    );
    await expect(other.result).not.toContainText('made in');
    // It may be run again, with the small images that it holds.
    await expect(other.result.getByRole('button', { name: 'Run again' })).toBeEnabled();
    const copies = await databaseRows(other.page, 'sources');
    expect(copies).toMatchObject([{ imageName: 'start-image.jpg', loras: [] }]);
    await context.close();
  });

  await test.step('Undo brings back what was there before, also after a reload', async () => {
    await studio.reload();
    const undone = page.getByRole('region', { name: 'Undo the last change' });
    await expect(undone).toContainText('something else');
    await undone.getByRole('button', { name: 'Undo' }).click();
    await expect(undone).toHaveCount(0);
    await expect(studio.prompt).toHaveValue('something else');
    await expect(studio.steps).toHaveValue('30');
    await expect(studio.zoom).toHaveValue('1');
    await studio.reload();
    await expect(studio.prompt).toHaveValue('something else');
  });

  await test.step('its settings are used again, seed included', async () => {
    await (await studio.field('Seed')).fill('7');
    await studio.result.getByRole('button', { name: 'Use settings' }).click();
    await expect(
      page.getByText(/settings are in the form, with image and seed 1234567890/),
    ).toBeVisible();
    await expect(await studio.field('Seed')).toHaveValue('1234567890');
  });

  await test.step('it can be deleted, and brought back', async () => {
    const undo = page.getByRole('button', { name: 'Undo' });
    await studio.result.getByRole('button', { name: 'Delete' }).click();
    await expect(studio.history).toBeHidden();
    await undo.click();
    await expect(studio.history.getByText(prompt)).toBeVisible();
    await expect(undo).toBeHidden();
    await studio.result.getByRole('button', { name: 'Delete' }).press('Enter');
    await expect(undo).toBeVisible();
    await expect(studio.history).toBeHidden();
    await page.keyboard.press('Control+z');
    await expect(studio.history.getByText(prompt)).toBeVisible();
    await expect(undo).toBeHidden();
  });
});
