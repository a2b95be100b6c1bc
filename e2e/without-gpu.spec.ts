import { chromium, type Page } from 'playwright';
import { ensureBrowser } from '../lib/cli/browser/find';
import { noAdapterFlags } from '../lib/cli/browser/launch';
import { ServePage } from './pages/serve-page';
import { StudioPage } from './pages/studio-page';
import { databaseRows } from './support/database';
import {
  expect,
  full,
  picturePath,
  test,
  withFixtureModel,
  withSilentConsole,
} from './support/fixtures';

const note = (page: Page) => page.getByRole('complementary', { name: 'GPU check' });
/** The badge of the header opens the note on an emulated GPU. */
const openNote = (page: Page) => page.getByRole('button', { name: /^(CPU|Software GPU)/ }).click();
const cpuOffer = (page: Page) => page.getByRole('button', { name: 'Use the CPU instead' });

test(
  'one click in a new browser with an emulated GPU becomes a video of the bundled model',
  full,
  async ({ browser, baseURL }) => {
    // Without the model of tests.
    const page = await browser.newPage({ baseURL: baseURL ?? '' });
    const studio = new StudioPage(page);
    await withSilentConsole(page, async () => {
      await page.goto('/');
      // Pressed before the page knows its GPU.
      await page.getByRole('button', { name: 'Try the sample' }).click();
      await studio.waitForResult();
      await expect(studio.result).toContainText('mini on the CPU');
      await openNote(page);
      await expect(note(page)).toContainText('emulates a GPU, so the CPU computes');
      await expect(cpuOffer(page)).toHaveCount(0);
    });
    await page.close();
  },
);

test(
  'an emulated GPU that was chosen computes, and the note offers the CPU',
  full,
  async ({ studio, page }) => {
    const time = studio.cost;
    await expect(time).toBeVisible();
    const onCpu = await time.textContent();
    await studio.chooseGpu();
    await expect(time).not.toHaveText(onCpu ?? '');
    await openNote(page);
    await expect(note(page)).toContainText('emulates a GPU on the CPU');
    await expect(cpuOffer(page)).toBeVisible();
    await page.keyboard.press('Escape');
    await expect(note(page)).toBeHidden();
    await studio.reload();
    await studio.openAdvanced();
    await expect(page.getByRole('radio', { name: 'WebGPU' })).toBeChecked();
    await openNote(page);
    await cpuOffer(page).click();
    await expect(page.getByRole('radio', { name: 'CPU' })).toBeChecked();
    await expect(time).toHaveText(onCpu ?? '');
  },
);

test('the tab that serves and the settings follow the same rule', full, async ({ page }) => {
  const serve = new ServePage(page);
  await serve.open();
  await expect(serve.form.getByRole('radio', { name: 'CPU' })).toBeChecked();
  // No link leads to a model that this device is too slow for.
  await expect(serve.form).toContainText('use a computer with a graphics card');
  await expect(serve.form.getByRole('link', { name: /^Get / })).toHaveCount(0);
  await serve.form.getByRole('radio', { name: 'WebGPU' }).check();
  await openNote(page);
  await expect(cpuOffer(page)).toBeVisible();
  await page.goto('/settings');
  const computing = page.getByRole('region', { name: 'Computing' });
  await expect(computing.getByRole('radio', { name: 'WebGPU' })).toBeChecked();
  await page.evaluate(() => localStorage.removeItem('kinora:device'));
  await page.reload();
  await expect(computing.getByRole('radio', { name: 'CPU' })).toBeChecked();
});

test(
  'a browser without WebGPU gets a notice that says so and what helps',
  full,
  async ({ page }) => {
    // Every script of the page and its worker starts where WebGPU was never there.
    await page.context().route('**/_next/static/**/*.js', async (route) => {
      const response = await route.fetch();
      const remove = 'delete (self.Navigator ?? self.WorkerNavigator).prototype.gpu;';
      await route.fulfill({ response, body: `${remove}${await response.text()}` });
    });
    await page.goto('/');
    await expect(note(page)).toContainText('This browser has no WebGPU.');
    await expect(note(page)).toContainText(/Chrome or Edge/);
    await expect(note(page)).toContainText('The CPU computes here.');
    // Scripts that are still fetched must not end a test that has ended.
    await page.context().unrouteAll({ behavior: 'ignoreErrors' });
  },
);

test(
  'a browser without a usable GPU gets a notice, and offers the CPU where it was told otherwise',
  full,
  async ({ baseURL }) => {
    const browser = await chromium.launch({
      executablePath: await ensureBrowser(),
      args: [...noAdapterFlags],
    });
    try {
      const page = await browser.newPage({ baseURL: baseURL ?? '' });
      await withFixtureModel(page.context());
      const studio = new StudioPage(page);
      await studio.open();
      await expect(note(page)).toContainText('found no usable GPU');
      await studio.fill({ image: picturePath, prompt: 'A lamp flickers', steps: 40 });
      await studio.chooseGpu();
      await studio.generateButton.click();
      const failed = studio.failure.locator('[data-code="ADAPTER_MISSING"]');
      await expect(failed).toBeVisible();
      await expect(page.getByText('found no usable GPU')).toHaveCount(1);
      await failed.getByRole('button', { name: 'Use the CPU instead' }).click();
      await expect(cpuOffer(page)).toHaveCount(0);
      // The run that failed on the GPU is made again on the CPU, as the form says now.
      await studio.failure.getByRole('button', { name: 'Run again' }).click();
      await studio.waitForStep(1, 40);
      const backends = (await databaseRows(page, 'predictions')).map(({ backend }) => backend);
      expect(backends).toContain('wasm');
      await studio.progress.getByRole('button', { name: 'Cancel' }).click();
      await expect(studio.failure).toBeVisible();
    } finally {
      await browser.close();
    }
  },
);
