/** Draws the pictures of the studio's examples into `public/samples/`: `node --import tsx/esm` and this file. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { chromium } from 'playwright';
import { testLaunchOptions } from '../../browser/launch';
import { root } from '../../paths';
import { scenes } from './scenes';

const folder = path.join(root, 'public/samples');
const browser = await chromium.launch(await testLaunchOptions());
await mkdir(folder, { recursive: true });
for (const [name, { width, height, svg }] of Object.entries(scenes)) {
  const page = await browser.newPage({ viewport: { width, height } });
  await page.setContent(`<style>body { margin: 0 } svg { display: block }</style>${svg}`);
  const picture = await page.screenshot({ type: 'jpeg', quality: 80 });
  await writeFile(path.join(folder, `${name}.jpg`), picture);
  await page.close();
}
await browser.close();
