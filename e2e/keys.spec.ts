import { KeysPage } from './pages/keys-page';
import { ServePage } from './pages/serve-page';
import type { ApiCaller } from './support/api-caller';
import { expectAccessible, full } from './support/fixtures';
import { expect, test } from './support/serve-fixtures';
import { acceptTerms } from './support/terms';

/** What the API answers to a key. */
async function answerTo(caller: ApiCaller, key: string): Promise<number> {
  const headers = { Authorization: `Bearer ${key}` };
  const response = await fetch(`${caller.origin}/api/v3/balance`, { headers });
  await response.body?.cancel();
  return response.status;
}

test(
  'a link signs in; a key is made, shown once, copied, used and revoked',
  full,
  async ({ page, context, caller }) => {
    const keys = new KeysPage(page);
    const token = await caller.signInToken();
    await keys.openLink(token);
    expect(page.url()).toBe(`${caller.origin}/keys`);
    expect(await page.evaluate(() => history.length)).toBeLessThanOrEqual(2);
    await expect(keys.list.getByRole('heading', { level: 2 })).toBeFocused();

    const name = `A name so long that it has to be broken somewhere ${token.slice(-6)}`;
    // The terms are asked for before the first key of a device, and only then.
    await keys.fill(name);
    await keys.terms.getByRole('button', { name: 'Not now' }).click();
    await expect(page.getByText('once the terms of use are accepted')).toBeVisible();
    await keys.fill(name);
    await test.step('terms', () => expectAccessible(page));
    await keys.terms.getByRole('button', { name: 'Accept' }).click();
    const key = await keys.createdKey(name);
    expect(key).toMatch(/^kn_[A-Za-z0-9]{8}_[A-Za-z0-9]{40,}$/);
    await test.step('with a new key', () => expectAccessible(page));
    await expect(keys.created.getByRole('heading')).toBeFocused();
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await keys.created.getByRole('button', { name: 'Copy', exact: true }).click();
    await expect(keys.created.getByRole('status')).toHaveText('Copied.');
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(key);
    expect(await answerTo(caller, key)).toBe(200);
    await keys.created.getByRole('button', { name: 'I have it' }).click();
    await expect(keys.created).toHaveCount(0);
    await expect(page.locator('body')).not.toContainText(key);

    // The session outlives a reload; the key cannot be seen again.
    await page.reload();
    await expect(keys.key(name)).toContainText('Everything but administration');
    await expect(page.locator('body')).not.toContainText(key);
    await keys
      .key(name)
      .getByRole('button', { name: `Revoke ${name}` })
      .click();
    await expect(keys.dialog).toHaveAccessibleName(`Revoke “${name}”?`);
    await expect(keys.dialog.getByRole('button', { name: 'Keep it' })).toBeFocused();
    await test.step('before it is revoked', () => expectAccessible(page));
    await page.keyboard.press('Escape');
    await expect(keys.dialog).toHaveCount(0);
    expect(await answerTo(caller, key)).toBe(200);
    await keys.key(name).getByRole('button', { name: 'Revoke' }).click();
    await keys.dialog.getByRole('button', { name: 'Revoke' }).click();
    await expect(keys.dialog).toHaveCount(0);
    await expect(keys.key(name)).toBeHidden();
    await keys.list.getByText(/^Revoked and ended/).click();
    await expect(keys.key(name)).toContainText('Revoked');
    expect(await answerTo(caller, key)).toBe(401);

    await keys.signOutButton.click();
    await expect(keys.signIn).toBeVisible();
    await page.reload();
    await expect(keys.signIn).toBeVisible();
  },
);

test(
  'a browser that is signed in serves after one click; the page counts it, and revoking its token disconnects it',
  full,
  async ({ page, context, caller }) => {
    const keys = new KeysPage(page);
    const token = await caller.signInToken();
    await keys.openLink(token);
    await expect(keys.workers).toContainText(/of your workers (is|are) connected/);
    const name = `Desk ${token.slice(-6)}`;
    await acceptTerms(page);
    await keys.createKey('Another machine', 'Worker token');
    await expect(keys.created.getByRole('link', { name: 'Serve' })).toBeVisible();

    const serve = new ServePage(await context.newPage());
    await new KeysPage(serve.page).open();
    await serve.page.getByRole('link', { name: 'Serve with this browser' }).click();
    await expect(serve.form).toContainText('You are signed in');
    await expect(serve.token).toBeHidden();
    await test.step('signed in', () => expectAccessible(serve.page));
    await serve.connect(null, { name });
    await serve.waitFor('idle');
    const line = keys.workers.getByRole('listitem').filter({ hasText: name });
    // The tab knows that it is connected before the server has heard from it what it can do.
    await expect(async () => {
      await page.reload();
      await expect(line).toHaveText(`${name}tiny, f32: waits for a job`, { timeout: 5000 });
    }).toPass({ timeout: 60_000 });
    // Others may still be known from tests before.
    await expect(keys.workers).toContainText(
      /(One of your workers is|\d of your workers are) connected/,
    );

    await keys.key(name).getByRole('button', { name: 'Revoke' }).click();
    await keys.dialog.getByRole('button', { name: 'Revoke' }).click();
    await serve.waitFor('refused');
    await expect(serve.connection).toContainText('Use a worker token of this server');
  },
);

test.describe('with requests that are refused', () => {
  test.use({ cuts: true });

  test(
    'a link works once; a failed sign-in says what to do',
    full,
    async ({ page, browser, baseURL, caller }) => {
      const token = await caller.signInToken();
      const elsewhere = await browser.newContext({ ...(baseURL && { baseURL }) });
      await new KeysPage(await elsewhere.newPage()).openLink(token);
      await elsewhere.close();
      const keys = new KeysPage(page);
      await page.goto(`/keys#sign-in=${token}`);
      await expect(keys.signIn.getByRole('status')).toContainText('Sign-in failed');
      expect(page.url()).toBe(`${caller.origin}/keys`);
      await test.step('signed out', () => expectAccessible(page));
      // An admin key in the field does as well.
      await keys.signIn.getByLabel('Admin key or sign-in link').fill(caller.key);
      await keys.signIn.getByRole('button', { name: 'Sign in' }).click();
      await expect(keys.signOutButton).toBeVisible();
    },
  );
});
