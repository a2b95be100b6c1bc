import { expect, test } from 'playwright/test';
import { expectAccessible, full, views } from './support/fixtures';

for (const path of ['/docs', '/docs/api']) {
  // The reference page is Scalar's and slow.
  const details = path === '/docs' ? {} : full;
  test(
    `${path} is accessible, isolated, silent, and asks no other host`,
    details,
    async ({ page, baseURL }) => {
      const said: string[] = [];
      page.on('console', (message) => said.push(`${message.type()}: ${message.text()}`));
      page.on('pageerror', (error) => said.push(`uncaught: ${error.message}`));
      page.on('request', (request) => {
        const { protocol, origin } = new URL(request.url());
        if (protocol.startsWith('http') && origin !== new URL(baseURL ?? '').origin) {
          said.push(`foreign: ${request.url()}`);
        }
      });
      // Each scheme and each width once: a look at Scalar's page takes ten seconds.
      const [light, , , darkAndNarrow] = views;
      for (const view of [light, darkAndNarrow]) {
        // Scalar lays its page out for the width at which it was opened.
        await page.emulateMedia({ colorScheme: view.colorScheme });
        await page.setViewportSize({ width: view.width, height: 800 });
        await page.goto(path);
        const first = path === '/docs' ? 'Quick start' : 'Submit an image and a prompt';
        await expect(page.getByText(first).first()).toBeVisible();
        // Scalar draws its list before the text.
        await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
        expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
        await expectAccessible(page, [view]);
      }
      expect(said).toEqual([]);
    },
  );
}

test('the root of the API is a refusal of the API, not a page', async ({ request }) => {
  for (const path of ['/api', '/api/']) {
    const answer = await request.get(path);
    expect(answer.status()).toBe(404);
    expect(await answer.json()).toMatchObject({ code: 404, error_code: 'NOT_FOUND' });
  }
});

test('the contents lead to their sections', async ({ page }) => {
  await page.goto('/docs');
  const links = page.getByRole('navigation', { name: 'Contents' }).getByRole('link');
  for (const link of await links.all()) {
    const name = (await link.textContent()) ?? '';
    await link.click();
    await expect(page.getByRole('heading', { name, exact: true })).toBeInViewport();
  }
});

test(
  'Scalar draws its own buttons, and each part has one place in its list',
  full,
  async ({ page }) => {
    await page.goto('/docs/api');
    const disabled = page.getByRole('button', { name: /^Authentication/ });
    await expect(disabled).toHaveCSS('opacity', '1');
    const borders = await page
      .locator('.reference button')
      .evaluateAll((all) => all.map((one) => getComputedStyle(one).borderTopStyle));
    // The rules of our elements give way.
    expect(borders).not.toContain('outset');
    const places = page.getByRole('complementary').first();
    await expect(places.getByText('Predictions', { exact: true })).toBeVisible();
    await expect(places.getByText('Webhooks', { exact: true })).toHaveCount(1);
  },
);

test('blocks of code end where their box ends', async ({ page }) => {
  await page.goto('/docs');
  const cut = await page
    .locator('.code pre')
    .evaluateAll((all) => all.filter((one) => one.scrollHeight > one.clientHeight).length);
  expect(cut).toBe(0);
});
