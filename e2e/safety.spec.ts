import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { root } from '../lib/cli/paths';
import { defaultSafetyChecker } from '../lib/contract';
import { addToBias } from '../lib/safety/testing/bias';
import type { LocalHub } from '../lib/weights/testing/hub/server';
import { ModelsPage } from './pages/models-page';
import { StudioPage } from './pages/studio-page';
import { expect, expectAccessible, full, picturePath, test } from './support/fixtures';
import { answerTerms } from './support/terms';

const prompt = 'A paper boat drifts over a quiet pond';

/** Puts the checker on the hub, with a bias that makes it flag everything. */
async function publishChecker(hub: LocalHub): Promise<void> {
  const folder = path.join(root, 'lib/safety/goldens/timm');
  const weights = new Uint8Array(await readFile(path.join(folder, 'model.safetensors')));
  addToBias(weights, 20);
  const [file] = defaultSafetyChecker.files;
  if (!file) throw new Error('the checker has no files');
  hub.repositories.put(file.repository, 'model.safetensors', weights);
  hub.repositories.pin(file.repository, file.revision);
}

test(
  'the quick check judges from the first video on; the downloaded checker overrules it, blurs what it flags, and warns',
  full,
  async ({ page, hub }) => {
    await publishChecker(hub);
    const models = new ModelsPage(page);
    await models.open();
    await models.setHub(hub.url);
    const studio = new StudioPage(page);
    await studio.open();
    await studio.fill({ image: picturePath, prompt, steps: 1 });
    await studio.chooseCpu();
    const larger = page.getByRole('form').getByRole('button', { name: /larger checker/ });
    await expect(larger).toBeVisible();
    await studio.generate();
    await expect(studio.progress.getByText('Check frames')).toBeVisible();
    await studio.waitForResult();
    await expect(studio.verdict).toContainText(
      /Quick check: clear by nsfwjs-mobilenet-v2, score 0\.\d\d \(0\.6 flags\), 6 frames looked at\./,
    );
    await expect(studio.verdict.getByRole('button', { name: 'Check now' })).toHaveCount(0);
    await studio.play();

    await studio.openVerdict();
    const download = studio.verdict.getByRole('button', {
      name: /^Download the larger checker \(.*B\) and check$/,
    });
    await test.step('nothing is fetched before the terms are accepted', async () => {
      hub.forget();
      await download.click();
      await answerTerms(page, 'Not now');
      await expect(download).toBeFocused();
      expect(hub.requests).toEqual([]);
      await download.click();
      await answerTerms(page, 'Accept');
    });
    await expect(studio.verdict).toContainText(/Flagged by Marqo.*score 0\.99/, {
      timeout: 60_000,
    });
    await expect(larger).toHaveCount(0);

    await test.step('it is shown with the keyboard, and blurred again', async () => {
      const show = studio.result.getByRole('button', { name: 'Show the video', exact: true });
      const found = 'The safety checker found nudity or sex in this video. It may be wrong.';
      await expect(show).toHaveAccessibleDescription(found);
      await expect(studio.history).toContainText(found);
      for (const name of ['Make it longer', 'Use last frame']) {
        const button = studio.result.getByRole('button', { name, exact: true });
        await expect(button).toBeDisabled();
        await expect(button).toHaveAccessibleDescription(/are off until you show the video\.$/);
      }
      await expect(studio.player).toHaveCount(0);
      await expectAccessible(page);
      await show.focus();
      await page.keyboard.press('Enter');
      await expect(studio.player).toBeVisible();
      const cover = studio.result.getByRole('button', { name: 'Blur again' });
      await expect(cover).toBeFocused();
      await page.keyboard.press('Space');
      await expect(studio.player).toHaveCount(0);
    });

    await test.step('a flagged start image is said before minutes are spent', async () => {
      await hub.close();
      await studio.steps.fill('40');
      await studio.generate();
      const notice = studio.progress.getByRole('alert');
      await expect(notice).toContainText('nudity or sex in an input image (score 0.99)');
      await expect(studio.progress.getByRole('button', { name: 'Show the preview' })).toBeVisible();
      await expect(studio.progress.getByText('Check frames')).toBeVisible();
      await notice.getByRole('button', { name: 'Cancel this video' }).click();
      await expect(studio.progress).toHaveCount(0);
    });

    await page.getByRole('link', { name: 'Terms of use' }).click();
    await expect(page.getByText(/^Accepted on this device on /)).toBeVisible();
    await expect(page.getByRole('button', { name: 'Accept' })).toHaveCount(0);
  },
);
