import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright';
import { expect, full, picturePath, test } from './support/fixtures';

for (const [width, height] of [
  [1280, 720],
  [390, 844],
] as const) {
  test(`Generate, time and memory are in sight at ${width}×${height}`, async ({ studio, page }) => {
    await page.setViewportSize({ width, height });
    await expect(studio.generateButton).toBeInViewport({ ratio: 1 });
    const form = page.getByRole('form', { name: 'Video settings' });
    await expect(form.getByRole('definition').first()).toHaveText(/^(about|roughly) \d+ /);
    await expect(form.getByRole('definition').nth(1)).toHaveText(/^\d+ MiB$/);
    await page.getByText('More settings').click();
    await (await studio.field('Seed')).focus();
    await expect(studio.generateButton).toBeInViewport({ ratio: 1 });
    await expect(page.getByRole('radio', { name: 'Ultra-fast' })).toBeInViewport({ ratio: 1 });
  });
}

test('the sample runs at once, and the tab shows how far it is', async ({ studio, page }) => {
  await studio.chooseCpu();
  const icon = page.locator('link[rel="icon"]').first();
  const own = await icon.getAttribute('href');
  await expect(page.getByText(/with Wan2\.2 TI2V 5B takes more than a day/)).toBeVisible();
  await page.getByRole('button', { name: 'Try the sample' }).click();
  await expect(studio.progress).toBeVisible();
  await expect(studio.prompt).toHaveValue(/mountain lake/);
  await expect(page).toHaveTitle(/\d+% · Kinora/);
  await expect(icon).toHaveAttribute('href', /^data:image\/svg/);
  await studio.progress.getByRole('button', { name: 'Cancel', exact: true }).click();
  await expect(studio.failure).toBeVisible();
  await expect(icon).toHaveAttribute('href', String(own));
});

test('the notice on the GPU does not move the stage', async ({ page }) => {
  const stage = page.locator('.stages');
  const stageTop = async () => (await stage.boundingBox())?.y;
  await page.goto('/', { waitUntil: 'commit' });
  await stage.waitFor();
  const before = await stageTop();
  await expect(page.getByRole('complementary', { name: 'GPU check' })).toBeVisible();
  expect(await stageTop()).toBe(before);
});

test('what is done before the database is loaded is not lost', full, async ({ studio, page }) => {
  await studio.chooseCpu();
  await studio.fill({ image: picturePath, prompt: 'A lantern', steps: 1 });
  await expect(page.locator('.image-bar')).toBeVisible();
  await page.getByRole('radio', { name: /Portrait/ }).check();
  await expect.poll(() => storedDraft(page)).toContain('720*1280');
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route('**/_next/static/chunks/*.js', async (route) => {
    const response = await route.fetch();
    if ((await response.text()).includes('DexieError')) await held;
    await route.fulfill({ response });
  });
  await page.reload();
  await expect(studio.generateButton).toBeEnabled();
  await studio.prompt.fill('A lantern swings');
  await studio.generateButton.click();
  await expect(page.getByRole('img', { name: /^Start image/ })).toBeHidden();
  release();
  await expect(studio.progress).toBeVisible();
  await expect(studio.prompt).toHaveValue('A lantern swings');
  await expect(page.getByRole('radio', { name: /Portrait/ })).toBeChecked();
  await expect(page.getByRole('img', { name: /^Start image/ })).toBeVisible();
  await expect.poll(() => storedDraft(page)).toContain('A lantern swings');
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

/** Values of the form as the page has saved them. */
function storedDraft(page: Page): Promise<string> {
  return page.evaluate(
    () =>
      new Promise<string>((resolve, reject) => {
        const opening = indexedDB.open('kinora');
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const read = opening.result.transaction('drafts').objectStore('drafts').get('values');
          read.onerror = () => reject(read.error);
          read.onsuccess = () => {
            opening.result.close();
            resolve(JSON.stringify(read.result ?? null));
          };
        };
      }),
  );
}

/**
 * Kilobytes that the scripts may take, compressed, after which Generate can be pressed. React and Next take 138 of
 * them.
 */
const mostKilobytes = 198;

test('Generate can be pressed after few scripts', async ({ request, baseURL }) => {
  const html = await (await request.get('/')).text();
  const tags = [...html.matchAll(/<script\b[^>]*\bsrc="([^"]+)"[^>]*>/g)];
  // Browsers without modules load the polyfills; none of those has WebGPU.
  const sources = tags.filter(([tag]) => !/nomodule/i.test(tag)).map(([, source]) => source ?? '');
  expect(sources.length).toBeGreaterThan(5);
  const sizes = await Promise.all(
    [...new Set(sources)].map(async (source) => {
      const answer = await request.get(new URL(source, baseURL).href);
      return { source, bytes: gzipSync(await answer.body()).length };
    }),
  );
  const total = sizes.reduce((sum, { bytes }) => sum + bytes, 0);
  expect(total / 1000, JSON.stringify(sizes)).toBeLessThanOrEqual(mostKilobytes);
});
