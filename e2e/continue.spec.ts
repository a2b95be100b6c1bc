import { openAsBlob } from 'node:fs';
import { BlobSource, Input, MP4 } from 'mediabunny';
import type { Locator } from 'playwright';
import { inspectVideo } from '../lib/video/inspect';
import { sniffImage } from '../lib/video/sniff';
import { packetsOf } from '../lib/video/testing/packets';
import { wavOf } from '../lib/video/testing/wav';
import { expect, expectAccessible, full, picturePath, test } from './support/fixtures';

/** What a video says of how it was made. */
async function settingsIn(file: Blob): Promise<unknown> {
  const input = new Input({ source: new BlobSource(file), formats: [MP4] });
  const { comment } = await input.getMetadataTags();
  input.dispose();
  return JSON.parse(comment ?? '');
}

/** Presses a button of a dialog or of the page that saves a file. @returns its place */
async function save(button: Locator, name: RegExp): Promise<string> {
  const [download] = await Promise.all([button.page().waitForEvent('download'), button.click()]);
  expect(download.suggestedFilename()).toMatch(name);
  const file = test.info().outputPath(download.suggestedFilename());
  await download.saveAs(file);
  return file;
}

test('a video is made longer, joined, trimmed and compared', full, async ({ studio, page }) => {
  test.slow();
  const { result } = studio;
  const button = (name: string) => result.getByRole('button', { name, exact: true });
  await studio.chooseCpu();
  await studio.fill({ image: picturePath, prompt: 'A paper boat drifts', steps: 1 });
  await (await studio.field('Seed')).fill('7');
  await studio.generate();
  await studio.waitForResult();

  await test.step('frame by frame, and one as a picture', async () => {
    const count = result.getByText(/^Frame \d+ of 41/);
    await studio.play();
    await studio.more('Frame by frame');
    await button('Next frame').click();
    await expect(studio.video).toHaveJSProperty('paused', true);
    await studio.video.evaluate((video: HTMLVideoElement) => {
      video.currentTime = 1.02;
    });
    await expect(count).toHaveText('Frame 9 of 41 · 1.00 s');
    await page.keyboard.press('.');
    await page.keyboard.press('.');
    await expect(count).toHaveText('Frame 11 of 41 · 1.25 s');
    await page.keyboard.press(',');
    await expect(count).toHaveText(/^Frame 10 of 41 · 1\.1/);
    const file = await save(button('Save frame'), /^kinora-7-\w{8}-frame-10\.png$/);
    const bytes = new Uint8Array(await (await openAsBlob(file)).arrayBuffer());
    expect(await sniffImage(bytes)).toMatchObject({ format: 'png', width: 1280, height: 720 });
  });

  await test.step('make it longer, by its last frames where its latents are gone', async () => {
    await button('Make it longer').click();
    const dialog = page.getByRole('dialog', { name: 'Make it longer' });
    const gone = dialog.getByText(/^The latents of this video’s end are not in this browser/);
    await expect(gone).toBeHidden();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await page.evaluate(async () => {
      const root = await navigator.storage.getDirectory();
      await root.removeEntry('runs', { recursive: true });
    });
    await button('Make it longer').click();
    await expect(gone).toBeVisible();
    await dialog.getByRole('checkbox', { name: 'Keep the motion' }).uncheck();
    await expect(dialog.getByRole('checkbox', { name: 'Keep the colours' })).toBeChecked();
    await expectAccessible(page);
    await dialog.getByRole('checkbox', { name: 'Keep the motion' }).check();
    await dialog.getByLabel('What happens next?').fill('The boat reaches the shore');
    await dialog.getByRole('button', { name: 'Continue the video' }).click();
    await expect(studio.progress).toBeVisible();
    await studio.waitForResult();
    await expect(result).toContainText('The boat reaches the shore');
  });

  const cards = studio.history.getByRole('listitem');
  const heading = result.getByRole('heading', { name: 'Your video' });

  await test.step('join it with the one before: a video of its own', async () => {
    await studio.more('Join and trim');
    const dialog = page.getByRole('dialog', { name: 'Join and trim' });
    await expect(
      dialog.getByText(/^81 of 81 frames, 10\.13 s\. They stay as they are\./),
    ).toBeVisible();
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Keep as a new video' }).click();
    await expect(result).toContainText('10.1 s, 81 frames');
    await expect(heading).toBeFocused();
    await expect(cards).toHaveCount(3);
    await expect(cards.first()).toContainText('Joined from 2 videos');
    const file = await openAsBlob(await save(button('Download'), /^kinora-7-\w{8}\.mp4$/));
    expect(await inspectVideo(file)).toMatchObject({ frames: 81, frameRate: 8, width: 1280 });
    expect(await settingsIn(file)).toMatchObject({
      prompt: 'A paper boat drifts',
      seed: 7,
      parts: [
        { prompt: 'A paper boat drifts', seed: 7, from: 0, to: 40 },
        { prompt: 'The boat reaches the shore', from: 0, to: 41 },
      ],
    });
  });

  await test.step('trim it', async () => {
    await studio.more('Trim');
    const dialog = page.getByRole('dialog', { name: 'Trim' });
    const keep = dialog.getByRole('button', { name: 'Keep as a new video' });
    await expect(keep).toBeDisabled();
    await dialog.getByLabel('Start').fill('30');
    await dialog.getByLabel('End').fill('49');
    await expect(
      dialog.getByText(/^20 of 81 frames, 2\.50 s\. They will be encoded again/),
    ).toBeVisible();
    await keep.click();
    await expect(result).toContainText('20 frames of another video');
    await expect(cards).toHaveCount(4);
    const file = await openAsBlob(await save(button('Download'), /\.mp4$/));
    expect(await inspectVideo(file)).toMatchObject({ frames: 20, frameRate: 8 });
  });

  await test.step('export it', async () => {
    await studio.more('Export');
    const dialog = page.getByRole('dialog', { name: 'Export' });
    await expect(dialog.getByRole('radio')).toHaveCount(2);
    await expectAccessible(page);
    await dialog.getByRole('radio', { name: /^GIF/ }).check();
    const saved = await save(dialog.getByRole('button', { name: 'Save' }), /^kinora-7-\w{8}\.gif$/);
    const bytes = new Uint8Array(await (await openAsBlob(saved)).arrayBuffer());
    expect(await sniffImage(bytes)).toMatchObject({ format: 'gif', width: 480, height: 270 });
    await expect(button('More')).toBeFocused();
  });

  await test.step('add sound', async () => {
    const before = await openAsBlob(await save(button('Download'), /\.mp4$/));
    await studio.more('Add sound');
    const dialog = page.getByRole('dialog', { name: 'Add sound' });
    const add = dialog.getByRole('button', { name: 'Add sound' });
    const choose = (name: string, buffer: Buffer) =>
      dialog.getByLabel('Audio file').setInputFiles({ name, mimeType: 'audio/wav', buffer });
    await choose('broken.wav', Buffer.from('no audio'));
    await expect(dialog.getByRole('alert')).toContainText('no audio that the browser can read');
    await expect(add).toBeDisabled();
    const wave = Int16Array.from({ length: 88_200 }, (_, i) => 9000 * Math.sin(i / 20));
    await choose('tone.wav', Buffer.from(await wavOf(wave, 44_100).arrayBuffer()));
    await expect(dialog.getByText(/^It has 1\.0 s/)).toBeVisible();
    await dialog.getByLabel('Fade in (s)').fill('0.5');
    await expectAccessible(page);
    await add.click();
    await expect(dialog.locator('video')).toBeVisible();
    const saved = save(dialog.getByRole('button', { name: 'Download' }), /-sound\.mp4$/);
    const made = await openAsBlob(await saved);
    expect(await inspectVideo(made)).toEqual(await inspectVideo(before));
    expect(await settingsIn(made)).toEqual(await settingsIn(before));
    expect((await packetsOf(made, 'audio')).length).toBeGreaterThan(100);
    await expect(button('More')).toBeFocused();
  });

  await test.step('upscale it: a new video, which says what it is made of', async () => {
    await studio.more('Upscale ×2');
    const dialog = page.getByRole('dialog');
    await expect(dialog).toContainText('2560×1440 pixels');
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Make it' }).click();
    await expect(dialog).toBeHidden();
    await expect(result).toContainText('2560×1440');
    await expect(result).toContainText('20 frames of another video');
    await expect(studio.video).toHaveJSProperty('videoWidth', 2560);
    await expect(cards).toHaveCount(5);
    await button('More').click();
    // Once is enough, and the other way round there are fewer frames to compute.
    await expect(button('Upscale ×2')).toBeHidden();
    await expect(button('Make it smoother')).toBeDisabled();
  });

  await test.step('compare both', async () => {
    await studio.history.getByRole('button', { name: /^The boat reaches the shore/ }).click();
    await expect(result).toContainText('The boat reaches the shore');
    await studio.more('Compare');
    const compare = page.getByRole('dialog', { name: 'Compare' });
    await compare.getByRole('combobox').selectOption({ index: 3 });
    await expect(compare.getByRole('row', { name: /^Seed \d+ 7$/ })).toBeVisible();
    await expect(compare.getByRole('row', { name: /^Prompt/ })).toContainText('reaches the shore');
    await compare.getByLabel('Frame', { exact: true }).fill('20');
    await expect(compare.getByText('Frame 21 of 41')).toBeVisible();
    const times = () =>
      compare
        .locator('video')
        .evaluateAll((videos) => (videos as HTMLVideoElement[]).map((one) => one.currentTime));
    const [left = 0, right = 0] = await times();
    expect(Math.abs(left - right)).toBeLessThan(1 / 16);
    await compare.getByLabel('Divider').fill('20');
    await expectAccessible(page);
    await compare.getByRole('button', { name: 'Play' }).click();
    await expect.poll(async () => Math.min(...(await times()))).toBeGreaterThan(3);
    const [a = 0, b = 0] = await times();
    expect(Math.abs(a - b)).toBeLessThan(0.2);
  });
});
