import type { Locator, Page } from 'playwright';
import { expect } from 'playwright/test';
import type { Connection } from '../../lib/worker/connection';
import { acceptTerms } from '../support/terms';

/** The page at `/serve`, found by what a user sees and hears. */
export class ServePage {
  readonly form: Locator;
  readonly token: Locator;
  readonly name: Locator;
  readonly connectButton: Locator;
  /** Where the connection stands, with the current job. */
  readonly connection: Locator;
  readonly preview: Locator;
  readonly takes: Locator;
  /** Whether this browser has the safety checker and a language model. */
  readonly abilities: Locator;
  /** The jobs that ended here. */
  readonly served: Locator;

  constructor(readonly page: Page) {
    this.form = page.getByRole('form', { name: 'Connect this tab' });
    this.token = this.form.getByLabel('Worker token');
    this.name = this.form.getByLabel('Name of this worker');
    this.connectButton = this.form.getByRole('button', { name: 'Connect' });
    this.connection = page.getByRole('region').and(page.locator('[data-status]'));
    this.preview = this.connection.getByRole('img', { name: 'Preview of the video so far' });
    this.abilities = page.getByRole('region', { name: 'Safety check and prompt optimiser' });
    this.takes = page.getByRole('region', { name: 'What it takes' });
    this.served = page.getByRole('region', { name: /jobs? done/ });
  }

  /** Opens the page and waits until it takes input. */
  async open(): Promise<void> {
    await this.page.goto('/serve');
    await acceptTerms(this.page);
    await expect(this.connectButton).toBeEnabled();
  }

  /**
   * Fills in the form with the tiny model, and connects. The CPU computes where nothing is chosen: the GPU is emulated.
   *
   * @param token null where the page makes one
   * @param backend what is chosen; nothing when absent
   * @param remember whether the browser is to keep the token and connect again
   */
  async connect(
    token: string | null,
    { name = 'A tab', backend = '', remember = false } = {},
  ): Promise<void> {
    if (token !== null) await this.token.fill(token);
    await this.name.fill(name);
    if (remember) await this.form.getByLabel(/^Remember it/).check();
    await this.form.getByLabel('Model', { exact: true }).selectOption('tiny');
    if (backend) await this.form.getByRole('radio', { name: backend }).check();
    await this.connectButton.click();
  }

  /** Waits until the connection stands like this. */
  async waitFor(status: Connection['status'], timeout = 30_000): Promise<void> {
    await expect(this.connection).toHaveAttribute('data-status', status, { timeout });
  }

  /** Presses a button of the connection. */
  async press(name: string): Promise<void> {
    await this.connection.getByRole('button', { name, exact: true }).click();
  }

  /** One of the facts of the current job, by its name. */
  fact(name: string): Locator {
    return this.connection.getByRole('term').filter({ hasText: name }).locator('+ dd');
  }

  /** The line of a job that ended here. */
  line(id: string): Locator {
    return this.served.getByRole('listitem').filter({ hasText: id.slice(0, 8) });
  }
}
