import type { Locator, Page } from 'playwright';
import { emptyRecord, recordId } from '../lib/gpu/kernels/record';
import { databaseRows } from './support/database';
import {
  test as base,
  expect,
  expectAccessible,
  full,
  picturePath,
  withSilentConsole,
} from './support/fixtures';
import { finishedRow, storedFiles, storePredictions } from './support/stored-videos';

/** The settings page, opened. The test fails when it writes anything to the console. */
const test = base.extend<{ settings: Page }>({
  settings: async ({ page }, use) => {
    await withSilentConsole(page, async () => {
      await openSettings(page);
      await use(page);
    });
  },
});

async function openSettings(page: Page): Promise<void> {
  await page.goto('/settings');
  await expect(page.getByRole('region', { name: 'Storage' })).toBeVisible();
}

/** Unfolds what few people need, where `inside` is not in sight. */
async function unfold(section: Locator, inside: Locator): Promise<void> {
  await expect(section.getByText('Expert', { exact: true })).toBeVisible();
  if (!(await inside.isVisible())) await section.getByText('Expert', { exact: true }).click();
}

/** The colours of the page: those of its background. */
function isDark(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    const [red = 255] = getComputedStyle(document.body).backgroundColor.match(/\d+/g) ?? [];
    return Number(red) < 128;
  });
}

test(
  'the theme is there before the first paint, in all tabs, and axe finds nothing',
  full,
  async ({ settings: page, context }) => {
    await page.emulateMedia({ colorScheme: 'light' });
    const other = await context.newPage();
    await other.goto('/terms');
    expect(await isDark(other)).toBe(false);
    await page.getByRole('radio', { name: 'Dark' }).check();
    await expect.poll(() => isDark(other)).toBe(true);
    await other.close();
    await page.addInitScript(() => {
      requestAnimationFrame(() => {
        const { colorScheme } = getComputedStyle(document.documentElement);
        document.documentElement.dataset.first = colorScheme;
      });
    });
    await page.reload();
    await expect(page.locator('html')).toHaveAttribute('data-first', 'dark');
    const frame = () => page.locator('meta[name="theme-color"]').first().getAttribute('content');
    expect([await isDark(page), await frame()]).toEqual([true, '#151312']);
    await expectAccessible(page, [{ colorScheme: 'light', width: 390 }]);
    await page.getByRole('group', { name: 'Theme' }).getByLabel('System').check();
    await page.emulateMedia({ colorScheme: 'light' });
    await expect.poll(() => isDark(page)).toBe(false);
    await expectAccessible(page, [{ colorScheme: 'light', width: 1280 }]);
  },
);

test(
  'backend, memory limit and safety check are the same here and in the studio, in all tabs',
  full,
  async ({ settings: page, context }) => {
    const computing = page.getByRole('region', { name: 'Computing' });
    const studio = await context.newPage();
    await studio.goto('/');
    await studio.getByText('Advanced', { exact: true }).click();
    await expect(computing.getByRole('radio', { name: 'CPU' })).toBeChecked();
    await computing.getByRole('radio', { name: 'WebGPU' }).check();
    await computing.getByLabel('Safety check').uncheck();
    await expect(studio.getByLabel('Safety check')).not.toBeChecked();
    await computing.getByLabel('GPU memory').fill('0');
    await expect(computing.getByText('GPU memory must be a number')).toBeVisible();
    await computing.getByLabel('GPU memory').fill('7.5');
    await expect(studio.getByRole('radio', { name: 'WebGPU' })).toBeChecked();
    await expect(studio.getByLabel('GPU memory')).toHaveValue('7.5');
    await studio.getByLabel('GPU memory').fill('6');
    await expect(computing.getByLabel('GPU memory')).toHaveValue('6');
    await studio.close();
    await page.getByRole('link', { name: 'Studio' }).click();
    await page.getByText('Advanced', { exact: true }).click();
    await expect(page.getByRole('radio', { name: 'WebGPU' })).toBeChecked();
    await expect(page.getByLabel('GPU memory')).toHaveValue('6');
  },
);

test(
  'what computes on the GPU is chosen, kept, and copied with the diagnostics',
  full,
  async ({ settings: page, context }) => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const gpu = page.getByRole('region', { name: 'GPU', exact: true });
    await unfold(gpu, gpu.getByRole('radio', { name: 'Exact' }));
    // An emulated GPU takes long to compile kernels: there the runtime computes, unless it is asked otherwise.
    await expect(gpu.getByRole('radio', { name: 'Runtime only' })).toBeChecked();
    await gpu.getByRole('radio', { name: 'Runtime only' }).press('ArrowDown');
    await expect(gpu.getByRole('radio', { name: 'Exact' })).toBeChecked();
    await gpu.getByRole('radio', { name: 'Fast' }).check();
    await expect(gpu.getByText('slightly different')).toBeVisible();
    await gpu.getByRole('radio', { name: 'Exact' }).check();
    await expect(gpu.getByText('Not checked yet')).toBeVisible();
    await expectAccessible(page, [{ colorScheme: 'dark', width: 390 }]);
    await page.reload();
    await unfold(gpu, gpu.getByRole('radio', { name: 'Exact' }));
    await expect(gpu.getByRole('radio', { name: 'Exact' })).toBeChecked();
    const lastRun = { mode: 'exact', keys: ['exact linear'], clamped: 7 } as const;
    await page.goto('/');
    await storePredictions(
      page,
      [finishedRow(1, { prompt: 'A boat' }, { kernels: lastRun })],
      new Uint8Array(),
    );
    await openSettings(page);
    // The check of the GPU is part of what is copied.
    await expect(gpu.getByText('Checking the GPU')).toHaveCount(0);
    await gpu.getByRole('button', { name: 'Copy diagnostics' }).click();
    await expect(gpu.getByRole('button', { name: 'Diagnostics copied' })).toBeVisible();
    const copied: unknown = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    expect(copied).toMatchObject({
      gpu: { report: { software: true } },
      kernels: { setting: 'exact', lastRun },
    });
  },
);

test(
  'a report of the GPU is made by keyboard, and its text names nothing of the person',
  full,
  async ({ settings: page, context }) => {
    // An emulated GPU compiles kernels for minutes.
    test.setTimeout(900_000);
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const gpu = page.getByRole('region', { name: 'GPU', exact: true });
    await unfold(gpu, gpu.getByRole('button', { name: 'Make a report' }));
    await gpu.getByRole('button', { name: 'Make a report' }).press('Enter');
    await gpu.getByRole('button', { name: 'Stop' }).press('Enter');
    await expect(gpu.getByRole('button', { name: 'Make a report' })).toBeFocused();
    await page.keyboard.press('Enter');
    await expect(gpu.getByText('Measured: ')).toBeVisible({ timeout: 600_000 });
    await expect(gpu.getByText('The report is made.')).toBeVisible({ timeout: 600_000 });
    const text = await gpu.getByRole('textbox', { name: 'Text for an issue' }).inputValue();
    await gpu.getByRole('button', { name: 'Copy text' }).click();
    await expect(gpu.getByRole('button', { name: 'Text copied' })).toBeVisible();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(text);
    expect(text).toMatch(/^# Kinora on a graphics card\n\ngoogle swiftshader, computed by the CPU/);
    for (const part of ['Self-test: ', 'Peak of', 'Self-attention: ']) {
      expect(text).toContain(`**${part}`);
    }
    // A machine that is too slow for it is told that.
    expect(text).toMatch(
      /\*\*Decoder, 3×3: |convolution \| 0 \| It was left out: what came before/,
    );
    expect(text).toContain('**Projected to 1280×704×121, which is 5 seconds**');
    expect(text).not.toMatch(/:\/\/|localhost|\/(home|root|Users|models|workers)\//);
    await expectAccessible(page, [{ colorScheme: 'dark', width: 390 }]);
  },
);

test('a feature that the GPU is not used with is named', full, async ({ settings: page }) => {
  const adapter = await page.evaluate(async () => {
    const found = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
    const { vendor = '', architecture = '', device = '', description = '' } = found?.info ?? {};
    return { vendor, architecture, device, description };
  });
  const agent = await page.evaluate(() => navigator.userAgent);
  const id = recordId({ adapter, features: [], limits: {} }, agent);
  const content = { ...emptyRecord('any'), refused: ['subgroups'] };
  await databaseRows(page, 'settings', [{ id, content }]);
  await page.reload();
  const gpu = page.getByRole('region', { name: 'GPU', exact: true });
  await unfold(gpu, gpu.getByRole('radio', { name: 'Exact' }));
  await gpu.getByRole('radio', { name: 'Exact' }).check();
  await expect(gpu.getByText('With subgroups this GPU computes wrong numbers')).toBeVisible();
});

test(
  'a video that could not be saved into the folder is named until it is; storage is freed by kind',
  full,
  async ({ settings: page, studio, context }) => {
    test.slow();
    await context.grantPermissions(['notifications']);
    // Only the dialog is ours: the folder is one of the origin private file system.
    await page.addInitScript(() => {
      const showDirectoryPicker = async () =>
        (await navigator.storage.getDirectory()).getDirectoryHandle('Films', { create: true });
      Object.assign(window, { showDirectoryPicker });
    });
    const saved = () =>
      page.evaluate(async () => {
        const names: string[] = [];
        const root = await navigator.storage.getDirectory();
        const folder = await root.getDirectoryHandle('Films', { create: true });
        for await (const [name, handle] of folder.entries()) {
          // While a file is written there is another one beside it.
          const file = await (handle as FileSystemFileHandle).getFile().catch(() => null);
          if (file) names.push(`${name}: ${file.size > 1000}`);
        }
        return names;
      });

    await test.step('everything is off until it is asked for', async () => {
      await openSettings(page);
      const finished = page.getByRole('region', { name: 'When a video is finished' });
      for (const name of ['Show a notification', 'Play a short sound']) {
        await expect(finished.getByLabel(name)).not.toBeChecked();
        await finished.getByLabel(name).click();
        await expect(finished.getByLabel(name)).toBeChecked();
      }
      await finished.getByRole('button', { name: 'Choose a folder' }).click();
      await expect(finished.getByText('saved into “Films”')).toBeVisible();
      await page.reload();
      for (const name of ['Show a notification', 'Play a short sound']) {
        await expect(finished.getByLabel(name)).toBeChecked();
      }
      await expect(finished.getByText('saved into “Films”')).toBeVisible();
    });

    await test.step('without its folder the video is named on every page, until it is saved', async () => {
      await studio.open();
      await page.evaluate(async () => {
        const root = await navigator.storage.getDirectory();
        await root.removeEntry('Films', { recursive: true });
      });
      await studio.fill({ image: picturePath, prompt: 'A lantern swings', steps: 1 });
      await studio.chooseCpu();
      await page.getByRole('radio', { name: 'Draft' }).check();
      await studio.generate();
      await studio.waitForResult();
      const notice = page.getByRole('alert').filter({ hasText: 'does not exist any more' });
      await expect(notice).toContainText('One finished video is in this browser only.');
      await expectAccessible(page);
      await page.getByRole('link', { name: 'Terms of use' }).click();
      await page.getByRole('link', { name: 'Models' }).click();
      await expect(notice).toBeVisible();
      expect(await saved()).toEqual([]);
      await notice.getByRole('button', { name: 'Try again' }).click();
      await expect(notice).toHaveCount(0);
      expect(await saved()).toEqual([expect.stringMatching(/^kinora-\d+-\w{8}\.mp4: true$/)]);
    });

    await test.step('latents and videos are deleted', async () => {
      await page.getByRole('link', { name: 'Settings' }).click();
      const kind = (name: string) =>
        page
          .getByRole('listitem')
          .filter({ has: page.getByRole('heading', { name, exact: true }) });
      const latents = kind('Latents of videos');
      await unfold(page.getByRole('region', { name: 'Storage' }), latents);
      const nothing = (place: Locator) => place.getByText('0 B', { exact: true });
      await expect(latents).toContainText('kB');
      await latents.getByRole('button').click();
      await expect(nothing(latents)).toBeVisible();
      const videos = kind('Videos');
      await videos.getByRole('combobox').selectOption('Older than a week');
      await expect(videos.getByRole('button', { name: 'Delete videos' })).toBeDisabled();
      await videos.getByRole('combobox').selectOption('All');
      await videos.getByRole('button', { name: 'Delete 1 video' }).click();
      await expectAccessible(page);
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
      await expect(nothing(videos)).toBeVisible();
      // The rows go first, their files right after.
      await expect.poll(() => storedFiles(page, 'videos')).toEqual([]);
    });
  },
);
