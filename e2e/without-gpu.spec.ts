import { chromium } from 'playwright';
import { ensureBrowser } from '../lib/cli/browser/find';
import { noAdapterFlags } from '../lib/cli/browser/launch';
import { StudioPage } from './pages/studio-page';
import { expect, full, picturePath, test, withFixtureModel } from './support/fixtures';

test('a browser without WebGPU gets a notice that says so and what helps', async ({ page }) => {
  // Every script of the page and its worker starts where WebGPU was never there.
  await page.context().route('**/_next/static/**/*.js', async (route) => {
    const response = await route.fetch();
    const remove = 'delete (self.Navigator ?? self.WorkerNavigator).prototype.gpu;';
    await route.fulfill({ response, body: `${remove}${await response.text()}` });
  });
  await page.goto('/');
  const notice = page.getByRole('complementary', { name: 'GPU check' });
  await expect(notice).toContainText('This browser has no WebGPU.');
  await expect(notice).toContainText(/Chrome or Edge/);
});

test(
  'a browser without a usable GPU gets a notice, and makes the video on the CPU',
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
      const notice = page.getByRole('complementary', { name: 'GPU check' });
      await expect(notice).toContainText('found no usable GPU');
      await studio.fill({ image: picturePath, prompt: 'A lamp flickers', steps: 1 });
      await studio.generateButton.click();
      const failed = studio.failure.locator('[data-code="ADAPTER_MISSING"]');
      await expect(failed).toBeVisible();
      await expect(page.getByText('found no usable GPU')).toHaveCount(1);
      await failed.getByRole('button', { name: 'Use the CPU instead' }).click();
      await expect(page.getByRole('button', { name: 'Use the CPU instead' })).toHaveCount(0);
      // The run that failed on the GPU is made again on the CPU, as the form says now.
      await studio.failure.getByRole('button', { name: 'Run again' }).click();
      await studio.waitForResult();
      await expect(studio.result).toContainText('the CPU');
    } finally {
      await browser.close();
    }
  },
);
