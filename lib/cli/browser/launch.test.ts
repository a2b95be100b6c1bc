/** @module-tag full */
import { expect, test } from 'vitest';
import { launchBrowser } from './launch';

test('a browser opens the page that is asked for and none for a window that nobody sees', async () => {
  const { browser } = await launchBrowser();
  try {
    await browser.newPage();
    const session = await browser.newBrowserCDPSession();
    // They would come a moment after the first page.
    await new Promise((resolve) => setTimeout(resolve, 3000));
    const { targetInfos } = await session.send('Target.getTargets');
    expect(targetInfos.map(({ type }) => type)).toEqual(['page']);
  } finally {
    await browser.close();
  }
}, 60_000);
