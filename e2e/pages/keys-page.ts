import type { Locator, Page } from 'playwright';
import { expect } from 'playwright/test';

/** The page at `/keys`, found by what a user sees and hears. */
export class KeysPage {
  readonly signIn: Locator;
  readonly signOutButton: Locator;
  readonly list: Locator;
  readonly create: Locator;
  /** The new key, as long as it is shown. */
  readonly created: Locator;
  readonly workers: Locator;
  /** Open links to videos. */
  readonly links: Locator;
  /** The question before something is revoked. */
  readonly dialog: Locator;
  /** The question before the first key of a device. */
  readonly terms: Locator;

  constructor(readonly page: Page) {
    this.signIn = page.getByRole('region', { name: 'Sign in' });
    this.signOutButton = page.getByRole('button', { name: 'Sign out' });
    this.list = page.getByRole('region', { name: 'Keys and tokens' });
    this.create = page.getByRole('region', { name: 'Create a key' });
    this.created = page.getByRole('region', { name: /^Copy “/ });
    this.links = page.getByRole('region', { name: 'Shared links' });
    this.workers = page.getByRole('region', { name: 'Workers' });
    this.dialog = page.getByRole('dialog');
    this.terms = page.getByRole('dialog', { name: 'Terms of use' });
  }

  /** Opens the page in a browser that is signed in. */
  async open(): Promise<void> {
    await this.page.goto('/keys');
    await expect(this.signOutButton).toBeVisible();
  }

  /** Opens a sign-in link and waits until the browser is signed in. */
  async openLink(token: string): Promise<void> {
    await this.page.goto(`/keys#sign-in=${token}`);
    await expect(this.signOutButton).toBeVisible();
  }

  /** Fills in and sends the form for a key, or a worker token. */
  async fill(name: string, kind: 'API key' | 'Worker token' = 'API key'): Promise<void> {
    await this.create.getByRole('radio', { name: kind }).check();
    await this.create.getByLabel('Name', { exact: true }).fill(name);
    await this.create.getByRole('button', { name: /^Create the/ }).click();
  }

  /** Creates a key, or a worker token, where the terms are accepted. @returns the whole of it */
  async createKey(name: string, kind: 'API key' | 'Worker token' = 'API key'): Promise<string> {
    await this.fill(name, kind);
    return this.createdKey(name);
  }

  /** The whole of the key that was just created. */
  async createdKey(name: string): Promise<string> {
    await expect(this.created).toHaveAccessibleName(`Copy “${name}” now`);
    return (await this.created.locator('.keys-whole code').textContent()) ?? '';
  }

  /** An active or revoked key, by its name. */
  key(name: string): Locator {
    return this.list.getByRole('listitem').filter({ hasText: name });
  }
}
