import type { Locator, Page } from 'playwright';
import { expect } from 'playwright/test';

/** The models page at `/models`, found by what a user sees and hears. */
export class ModelsPage {
  readonly storage: Locator;
  /** What this device can do. */
  readonly device: Locator;
  readonly loras: Locator;
  readonly address: Locator;
  readonly lookUp: Locator;
  readonly addModel: Locator;
  /** A model that the person added. */
  readonly added: Locator;
  /** The sheet before a download, or the question before something is deleted. */
  readonly dialog: Locator;

  constructor(readonly page: Page) {
    this.storage = page.getByRole('region', { name: 'Storage' });
    this.device = page.getByRole('region', { name: 'What this device can do' });
    this.loras = page.getByRole('region', { name: 'LoRA library' });
    this.addModel = page.getByRole('region', { name: 'Add a model' });
    this.address = this.addModel.getByLabel('Address on the hub');
    this.lookUp = this.addModel.getByRole('button', { name: 'Look it up' });
    this.added = page.getByRole('region').filter({ hasText: 'Added by you' });
    this.dialog = page.getByRole('dialog');
  }

  /** Opens the page and waits until the library is there. */
  async open(): Promise<void> {
    await this.page.goto('/models');
    await expect(this.storage).toBeVisible();
  }

  /** Makes another server the hub. */
  async setHub(url: string): Promise<void> {
    await this.page.getByText('Hub address', { exact: true }).click();
    await this.page.getByLabel('Base address of the hub').fill(url);
    await this.page.getByRole('button', { name: 'Save' }).click();
    await expect(this.page.getByText('Saved.')).toBeVisible();
  }

  /** Adds a model by its address and waits for the sheet with its sizes. */
  async addFromHub(address: string): Promise<void> {
    await this.address.fill(address);
    await this.lookUp.click();
    await expect(this.dialog).toContainText(/to fetch/);
  }

  /** Unfolds what can be chosen of a download, and its parts. */
  async openOptions(): Promise<void> {
    await this.dialog.getByText('Options', { exact: true }).click();
  }

  /** Answers the open sheet with Download. */
  async confirmDownload(): Promise<void> {
    await this.dialog.getByRole('button', { name: 'Download' }).click();
    await expect(this.dialog).toHaveCount(0);
  }

  /** One part of a model by its name. */
  part(model: Locator, name: string): Locator {
    return model.getByRole('listitem').filter({ hasText: name });
  }

  /** One model by its name. */
  model(name: string): Locator {
    return this.page.getByRole('region', { name, exact: true });
  }

  /** Adds a model from a folder of this machine. */
  async addFolder(folder: string): Promise<void> {
    await this.addModel.getByLabel('Folder of the model').setInputFiles(folder);
  }

  /** Adds a LoRA from a file of this machine. */
  async addLora(file: string): Promise<void> {
    await this.loras.getByLabel('Single files of the LoRA').setInputFiles(file);
  }

  /** One LoRA of the library by its name. */
  lora(name: string): Locator {
    const title = this.page.getByRole('heading', { name });
    return this.loras.getByRole('listitem').filter({ has: title });
  }

  /** The sentence and remedy of a failure that the page shows. */
  problem(code: string): Locator {
    return this.page.locator(`[data-code="${code}"]`);
  }

  /** Waits until a model has this status. */
  async waitForStatus(model: Locator, status: string | RegExp): Promise<void> {
    await expect(model.locator('.chip')).toHaveText(status, { timeout: 300_000 });
  }
}
