import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Page } from 'playwright';
import { root } from '../lib/cli/paths';
import { defaultSafetyChecker } from '../lib/contract/manifest';
import { addToBias } from '../lib/safety/testing/bias';
import type { LocalHub } from '../lib/weights/testing/hub/server';
import { ModelsPage } from './pages/models-page';
import { StudioPage } from './pages/studio-page';
import { expect, expectAccessible, full, picturePath, test } from './support/fixtures';
import { acceptTerms, answerTerms } from './support/terms';

const prompt = 'A paper boat drifts over a quiet pond';

/** Makes the hub's checker flag everything (`bias` 20) or nothing (−20). */
async function publishChecker(hub: LocalHub, bias: number): Promise<void> {
  const folder = path.join(root, 'lib/safety/goldens/timm');
  const weights = new Uint8Array(await readFile(path.join(folder, 'model.safetensors')));
  addToBias(weights, bias);
  const [file] = defaultSafetyChecker.files;
  if (!file) throw new Error('the checker has no files');
  hub.repositories.put(file.repository, 'model.safetensors', weights);
  hub.repositories.pin(file.repository, file.revision);
}

/** Makes the local hub the one of the page's browser, and opens the studio. */
async function openStudio(page: Page, hub: LocalHub): Promise<StudioPage> {
  const models = new ModelsPage(page);
  await models.open();
  await models.setHub(hub.url);
  const studio = new StudioPage(page);
  await studio.open();
  return studio;
}

async function fill(studio: StudioPage, steps = 1): Promise<void> {
  await studio.fill({ image: picturePath, prompt, steps });
  await studio.chooseCpu();
}

/** Downloads the hub's checker by the switch in the form. */
async function downloadChecker(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Download the larger checker/ }).click();
  await expect(page.getByText('quick check that comes with Kinora')).toHaveCount(0, {
    timeout: 60_000,
  });
}

test(
  'the quick check judges from the first video on; the downloaded checker overrules it, and blurs what it flags',
  full,
  async ({ page, hub }) => {
    await publishChecker(hub, 20);
    const studio = await openStudio(page, hub);
    await fill(studio);
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

    await test.step('it is shown with the keyboard, and blurred again', async () => {
      const show = studio.result.getByRole('button', { name: 'Show the video', exact: true });
      await expect(show).toHaveAccessibleDescription('The safety checker flagged this video.');
      await expect(studio.player).toHaveCount(0);
      await expectAccessible(page);
      await show.focus();
      await page.keyboard.press('Enter');
      await expect(studio.player).toBeVisible();
      const cover = studio.result.getByRole('button', { name: 'Blur again' });
      await expect(cover).toBeFocused();
      await page.keyboard.press('Space');
      await expect(studio.player).toHaveCount(0);
      await expect(studio.history).toContainText('The safety checker flagged this video.');
    });

    await page.getByRole('link', { name: 'Terms of use' }).click();
    await expect(page.getByText(/^Accepted on this device on /)).toBeVisible();
    await expect(page.getByRole('button', { name: 'Accept' })).toHaveCount(0);
  },
);

test(
  'a flagged start image is said before minutes are spent, and can be cancelled',
  full,
  async ({ page, hub }) => {
    await publishChecker(hub, 20);
    const studio = await openStudio(page, hub);
    await acceptTerms(page);
    await fill(studio, 40);
    await downloadChecker(page);
    await hub.close();
    await studio.generate();
    const notice = studio.progress.getByRole('alert');
    await expect(notice).toContainText('flags an input image (score 0.99)');
    await expect(studio.progress.getByRole('button', { name: 'Show the preview' })).toBeVisible();
    await expect(studio.progress.getByText('Check frames')).toBeVisible();
    await notice.getByRole('button', { name: 'Cancel this video' }).click();
    await expect(page.getByRole('region', { name: 'Cancelled' })).toBeVisible();
  },
);

test(
  'a prompt that is refused is said at the field, and nothing runs',
  full,
  async ({ studio }) => {
    await studio.fill({ image: picturePath, prompt: 'porn with a child', steps: 1 });
    await expect(studio.prompt).toHaveAccessibleDescription(/^The prompt names a child/);
    await studio.generateButton.click();
    await expect(studio.prompt).toBeFocused();
    await expect(studio.progress).toHaveCount(0);
    await expect(studio.history).toHaveCount(0);
  },
);
