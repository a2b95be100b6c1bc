import type { Page } from 'playwright';
import { expect } from 'playwright/test';
import { termsSha256, termsVersion } from '../../lib/contract';

/** Accepts the terms of use in the page's browser, as the button of the page does. */
export async function acceptTerms(page: Page): Promise<void> {
  const at = new Date().toISOString();
  const record = JSON.stringify({ version: termsVersion, sha256: await termsSha256(), at });
  await page.evaluate(async (text) => {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle('terms', { create: true });
    const file = await folder.getFileHandle('acceptance.json', { create: true });
    const stream = await file.createWritable();
    await stream.write(text);
    await stream.close();
  }, record);
}

/** Presses a button of the dialog that asks for the terms of use. */
export async function answerTerms(page: Page, answer: 'Accept' | 'Not now'): Promise<void> {
  const dialog = page.getByRole('dialog', { name: 'Terms of use' });
  await dialog.getByRole('button', { name: answer }).click();
  await expect(dialog).toHaveCount(0);
}

/** Forgets that the terms of use were accepted. */
export async function forgetTerms(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const root = await navigator.storage.getDirectory();
    await root.removeEntry('terms', { recursive: true });
  });
}
