import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test as base, expect } from 'playwright/test';
import { root } from '../browser/stamp';
import { StudioPage } from './studio';

interface Fixtures {
  /** The studio, opened. The test fails when its page writes anything to the console. */
  readonly studio: StudioPage;
}

/** Playwright's `test` with the studio at hand. */
export const test = base.extend<Fixtures>({
  studio: async ({ page }, use) => {
    const said: string[] = [];
    page.on('console', (message) => {
      said.push(`${message.type()}: ${message.text()} (${message.location().url})`);
    });
    page.on('pageerror', (error) => said.push(`uncaught: ${error.stack ?? error.message}`));
    const studio = new StudioPage(page);
    await studio.open();
    await use(studio);
    expect(said, 'the console stays silent').toEqual([]);
  },
});

/** A file as it is given to a file input. */
export function payload(name: string, buffer: Buffer, mimeType = 'image/png') {
  return { name, mimeType, buffer };
}

const goldens = path.join(root, 'e2e', 'goldens', 'tiny-wan');

/** A small real picture. */
export const picturePath = path.join(goldens, 'image.png');

/** Path of one of the adapters that come with the goldens. */
export function loraPath(name: string): string {
  return path.join(goldens, 'loras', `${name}.safetensors`);
}

/** The bytes of {@link picturePath}. */
export function picture(): Buffer {
  return readFileSync(picturePath);
}

/** A picture whose header claims another size. */
export function pictureOfSize(width: number, height: number): Buffer {
  const bytes = Buffer.from(picture());
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes;
}

export { expect };
