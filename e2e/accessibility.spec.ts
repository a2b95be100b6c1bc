import type { Page } from 'playwright';
import { errorPlaces } from '../app/help/error-places';
import { goldenRepository } from '../lib/models/wan/testing/golden-model';
import {
  expect,
  expectAccessible,
  full,
  picturePath,
  test,
  views,
  withSilentConsole,
} from './support/fixtures';
import { acceptTerms, forgetTerms } from './support/terms';

test(
  'the page for an unknown address has the navigation, and a link that skips it',
  full,
  async ({ page }) => {
    const answer = await page.goto('/no/such/page');
    expect(answer?.status()).toBe(404);
    await expectAccessible(page, views);
    await page.keyboard.press('Tab');
    const skip = page.getByRole('link', { name: 'Skip to content' });
    await expect(skip).toBeFocused();
    await expect(skip).toBeInViewport();
    await skip.press('Enter');
    await expect(page.getByRole('main')).toBeFocused();
    await page.getByRole('link', { name: 'Studio', exact: true }).click();
    await expect(page.getByRole('form', { name: 'Video settings' })).toBeVisible();
  },
);

test('the help opens at a section, and axe finds nothing on it', full, async ({ page }) => {
  await withSilentConsole(page, async () => {
    await page.goto('/help#problems');
    await expect(page).toHaveTitle('Help · Kinora');
    const problems = page.getByRole('region', { name: 'When something fails' });
    await expect(problems.getByText('No WebGPU, or no GPU found')).toBeInViewport();
    await expectAccessible(page, views);
    const contents = page.getByRole('navigation', { name: 'Contents' });
    for (const link of await contents.getByRole('link').all()) {
      await link.click();
      const title = await link.innerText();
      await expect(page.getByRole('heading', { name: title, exact: true })).toBeInViewport();
    }
    for (const code of Object.keys(errorPlaces)) {
      await expect(page.locator(`#${code}`)).toHaveCount(1);
    }
    await test.step('the search leaves the answers that have all of its words', async () => {
      const search = page.getByRole('searchbox', { name: 'Search the help' });
      await search.fill('GPU  memory smaller');
      await expect(page.getByRole('status').filter({ hasText: /^\d answers?$/ })).toBeVisible();
      await expect(
        page.getByRole('heading', { name: 'Not enough memory on the GPU' }),
      ).toBeVisible();
      await expect(page.getByRole('heading', { name: 'Your first video' })).toHaveCount(0);
      await search.fill('zebra');
      await expect(page.getByText('No answer has these words.')).toBeVisible();
      await expectAccessible(page);
    });
    // What it has left out is there again.
    await page.goto('/help#OUT_OF_MEMORY');
    const memory = page.getByRole('heading', { name: 'Not enough memory on the GPU' });
    await expect(memory).toBeInViewport();
    await expect(page.getByRole('heading', { name: 'Your first video' })).not.toBeInViewport();
    await expect(problems.getByRole('link', { name: 'settings' }).first()).toHaveAttribute(
      'href',
      '/settings',
    );
  });
});

test(
  'axe finds nothing on the studio as it opens, nor with everything unfolded and every field wrong',
  full,
  async ({ studio, page }) => {
    await test.step('as it opens', () => expectAccessible(page, views));
    await studio.openAdvanced();
    await studio.steps.fill('99');
    await page.getByLabel('Seed', { exact: true }).fill('-5');
    await studio.image.setInputFiles({
      name: 'a.png',
      mimeType: 'image/png',
      buffer: Buffer.from('no'),
    });
    await studio.generateButton.click();
    await expect(studio.prompt).toHaveAccessibleDescription(/^The prompt is empty\./);
    await expectAccessible(page, views);
  },
);

/** Presses Tab; what has the focus then must have a name and be in view. @returns its snapshot */
async function tab(page: Page): Promise<string | null> {
  await page.keyboard.press('Tab');
  const focused = page.locator(':focus');
  if ((await focused.count()) === 0) return null;
  await expect(focused).toHaveAccessibleName(/\S/);
  await expect(focused).toBeInViewport();
  return focused.ariaSnapshot();
}

test(
  'the models page works with the keyboard alone, and axe finds nothing on it, on the terms and in dialogs',
  full,
  async ({ models, page, hub }) => {
    const { dialog } = models;
    await test.step('everything is reached by Tab', async () => {
      // What comes above the models later would move the focus out of view.
      const device = page.getByRole('region', { name: 'What this device can do' });
      await expect(device.getByRole('status')).toContainText(/./);
      const reached: string[] = [];
      for (let presses = 0; presses < 40; presses += 1) {
        const snapshot = await tab(page);
        if (snapshot === null) break;
        reached.push(snapshot);
      }
      for (const name of ['Studio', 'Download', 'Choose a folder', 'Look it up', 'Hub address']) {
        expect(reached.join('\n')).toContain(name);
      }
      await expect(dialog).toHaveCount(0);
    });

    await test.step('a bad address is a sentence, and causes no request', async () => {
      for (const summary of await page.locator('summary').all()) await summary.click();
      const requests: string[] = [];
      page.on('request', (request) => requests.push(request.url()));
      await models.address.fill('not an address at all');
      await models.lookUp.click();
      await expect(models.problem('ADDRESS_INVALID')).toContainText('owner/name');
      await expect(models.address).toHaveValue('not an address at all');
      expect(requests).toEqual([]);
      await expectAccessible(page, views);
    });

    await test.step('terms', async () => {
      await page.goto('/terms');
      await expect(page.getByText(/^Accepted on this device on /)).toBeVisible();
      await expectAccessible(page, views);
    });

    await test.step('the dialog that asks for them', async () => {
      await forgetTerms(page);
      await models.open();
      await models
        .model('Tiny (random weights)')
        .getByRole('button', { name: /^Download/ })
        .click();
      await expect(dialog).toContainText('What must not be made');
      await expectAccessible(page, views);
      await page.keyboard.press('Escape');
      await expect(dialog).toHaveCount(0);
    });

    await test.step('a sheet keeps the focus, Escape closes it, and the focus returns', async () => {
      await acceptTerms(page);
      await models.setHub(hub.url);
      await models.addFromHub(goldenRepository);
      await page.keyboard.press('Escape');
      await expect(dialog).toHaveCount(0);
      const open = models.model('Golden').getByRole('button', { name: 'Download' });
      await open.focus();
      await page.keyboard.press('Enter');
      await expect(dialog.getByRole('button', { name: 'Download' })).toBeEnabled();
      for (let presses = 0; presses < 8; presses += 1) {
        await page.keyboard.press('Tab');
        const outside = page.locator(':focus').and(page.locator(':not(dialog, dialog *)'));
        await expect(outside.and(page.locator(':not(body)'))).toHaveCount(0);
      }
      await page.keyboard.press('Escape');
      await expect(dialog).toHaveCount(0);
      await expect(open).toBeFocused();
    });
  },
);

test('everything can be done with the keyboard alone', full, async ({ studio, page }) => {
  /** Presses Tab until the field has the focus. */
  const tabTo = async (name: RegExp) => {
    for (let presses = 0; presses < 40; presses += 1) {
      if (name.test((await tab(page)) ?? '')) return;
    }
    throw new Error(`${name} cannot be reached with Tab`);
  };

  // Playwright has to listen before the chooser opens.
  const chosen = page.waitForEvent('filechooser');
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog', { name: 'Shortcuts' })).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toHaveCount(0);

  await tabTo(/Image/);
  await page.keyboard.press('Enter');
  await (await chosen).setFiles(picturePath);
  await expect(page.getByRole('img', { name: /^Start image/ })).toBeVisible();
  await tabTo(/textbox "Prompt"/);
  await page.keyboard.type('A lantern swings?');
  await tabTo(/Portrait|Landscape/);
  await page.keyboard.press('ArrowRight');
  await expect(page.getByRole('radio', { name: /Portrait/ })).toBeChecked();
  await tabTo(/Advanced/);
  await page.keyboard.press('Enter');
  await tabTo(/"Steps"/);
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type('1');
  await tabTo(/radio "CPU"/);
  await page.keyboard.press('ArrowLeft');
  await expect(page.getByRole('radio', { name: 'WebGPU' })).toBeChecked();
  await page.keyboard.press('ArrowRight');
  await expect(page.getByRole('radio', { name: 'CPU' })).toBeChecked();
  await page.keyboard.press('ControlOrMeta+Enter');
  await studio.waitForResult();
  await expect(studio.result.getByRole('heading')).toBeFocused();
  await expect(studio.video).toBeVisible();
  await tabTo(/button "Download"/);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.keyboard.press('Enter'),
  ]);
  expect(download.suggestedFilename()).toMatch(/\.mp4$/);
  await expectAccessible(page, views);
});
