import { expectAccessible, full, views } from './support/fixtures';
import { expect, test } from './support/serve-fixtures';

// The reference sends requests that are refused.
test.use({ cuts: true });

for (const path of ['/docs', '/docs/api']) {
  test(
    `${path} is accessible, isolated, silent, and asks no other host`,
    full,
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
      for (const view of views) {
        await page.emulateMedia({ colorScheme: view.colorScheme });
        await page.setViewportSize({ width: view.width, height: 800 });
        await page.goto(path);
        const first = path === '/docs' ? 'Quick start' : 'Submit an image and a prompt';
        await expect(page.getByText(first).first()).toBeVisible();
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

test('a file of the pages answers 416 and 412 where a range or condition fails', async ({
  request,
}) => {
  const page = await (await request.get('/docs')).text();
  const script = /\/_next\/static\/[^"']+\.js/.exec(page)?.[0] ?? '';
  expect(script).not.toBe('');
  for (const path of ['/openapi.json', script]) {
    const get = (headers: Record<string, string>) => request.get(path, { headers });
    const size = (await (await get({})).body()).length;
    // As `wget -c` of a file that it has.
    const beyond = await get({ Range: `bytes=${size}-` });
    expect(beyond.status()).toBe(416);
    expect(beyond.headers()['content-range']).toBe(`bytes */${size}`);
    for (const condition of ['If-Match', 'If-Unmodified-Since'] as const) {
      const value = condition === 'If-Match' ? '"other"' : 'Mon, 01 Jan 2001 00:00:00 GMT';
      const failed = await get({ [condition]: value });
      expect(failed.status()).toBe(412);
      expect(await failed.text()).toBe('');
    }
    const part = await get({ Range: 'bytes=1-4' });
    expect([part.status(), (await part.body()).length]).toEqual([206, 4]);
    const head = await request.head(path, { headers: { Range: 'bytes=1-4' } });
    expect(head.status()).toBe(200);
  }
});

test('the contents lead to their sections', full, async ({ page }) => {
  await page.goto('/docs');
  const links = page.getByRole('navigation', { name: 'Contents' }).getByRole('link');
  for (const link of await links.all()) {
    const name = (await link.textContent()) ?? '';
    await link.click();
    await expect(page.getByRole('heading', { name, exact: true })).toBeInViewport();
  }
});

interface Operation {
  readonly operationId: string;
  readonly summary: string;
}

test(
  'the reference has a place for each request, and sends one to this server',
  full,
  async ({ page, caller }) => {
    const id = await caller.submit();
    await page.goto('/docs/api');
    const { paths } = await (await page.request.get('/openapi.json')).json();
    const contents = page.getByRole('navigation', { name: 'Contents' });
    for (const methods of Object.values<Record<string, Operation>>(paths)) {
      for (const { operationId, summary } of Object.values(methods)) {
        await expect(contents.locator(`a[href="#${operationId}"]`)).toHaveText(summary);
        await expect(page.locator(`h3[id="${operationId}"]`)).toHaveText(summary);
      }
    }
    // By the keyboard alone.
    const list = page.getByRole('region', { name: 'GET /api/v3/predictions', exact: true });
    await list.getByText('Send this request').focus();
    await page.keyboard.press('Enter');
    await list.getByLabel('API key').fill(caller.key);
    await list.getByLabel('page_size').fill('3');
    await page.keyboard.press('Enter');
    await expect(list.getByRole('status')).toHaveText(/^200/);
    await expect(list.getByRole('region', { name: 'Answer' })).toContainText(id);
    await list.getByLabel('page_size').fill('0');
    await page.keyboard.press('Enter');
    await expect(list.getByRole('status')).toHaveText(/^400/);
    await expectAccessible(page, [{ colorScheme: 'dark', width: 1280 }]);
    // Another form begins with the same key.
    const events = page.getByRole('region', { name: /^GET .*\/events$/ });
    await events.getByText('Send this request').click();
    await expect(events.getByLabel('API key')).toHaveValue(caller.key);
    await events.getByRole('textbox', { name: 'id', exact: true }).fill('0'.repeat(32));
    await page.keyboard.press('Enter');
    await expect(events.getByRole('status')).toHaveText(/^404/);
  },
);

test('blocks of code end where their box ends', async ({ page }) => {
  await page.goto('/docs');
  const cut = await page
    .locator('.code pre')
    .evaluateAll((all) => all.filter((one) => one.scrollHeight > one.clientHeight).length);
  expect(cut).toBe(0);
});
