import type { Page } from 'playwright';
import { termsSha256, termsVersion } from '../../lib/contract/terms';

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
