import { readFile } from 'node:fs/promises';
import type { Locator, Page } from 'playwright';
import { type Prediction, safetySchema } from '../lib/contract';
import { makeVideo } from '../relay/testing/video';
import { expect, expectAccessible, full, test } from './support/fixtures';
import { finishedRow, storedRow, storePredictions } from './support/stored-videos';

const error = {
  code: 'DEVICE_LOST',
  message: 'The GPU was lost.',
  remedy: 'Run it again.',
} as const;
const flagged = safetySchema.parse({ status: 'flagged', score: 0.99, frames: [0.99] });

const rows: readonly Prediction[] = [
  finishedRow(1, { prompt: 'A paper boat on a pond' }),
  finishedRow(2, { prompt: 'A kite in the wind' }),
  finishedRow(3, { prompt: 'A boat in fog' }, { safety: flagged }),
  storedRow(
    4,
    { prompt: 'A lantern swings' },
    {
      status: 'interrupted',
      interruptedAt: 's',
      error,
      checkpoint: { clip: 0, clips: 1, step: 4, steps: 6 },
    },
  ),
  storedRow(5, { prompt: 'A boat that sank' }, { status: 'failed', completedAt: 's', error }),
  finishedRow(6, { prompt: 'A red balloon' }),
  finishedRow(7, { prompt: 'A lighthouse at night' }),
  finishedRow(8, { prompt: 'A horse runs' }, { model: 'other' }),
  finishedRow(9, { prompt: 'A horse runs', num_inference_steps: 5 }),
];

test(
  'past videos: posters, search, favourites, failures, a ZIP, and deletions that are undone',
  full,
  async ({ studio, page }) => {
    const video = await makeVideo();
    await storePredictions(page, rows, video);
    await studio.open();
    const { history } = studio;
    const cards = history.getByRole('listitem');
    const card = (prompt: string) => cards.filter({ hasText: prompt });
    const face = (prompt: string) => history.getByRole('button', { name: prompt });
    const prompts = () => history.locator('.card-prompt').allTextContents();

    await test.step('a video without a poster gets one, of a frame', async () => {
      const picture = card('A kite in the wind').locator('img');
      await expect(picture).toHaveJSProperty('naturalWidth', 480);
      await expect(picture).toHaveJSProperty('naturalHeight', 270);
    });

    await test.step('it plays under the mouse and with the focus, but not where it is blurred', async () => {
      await face('A kite in the wind').hover();
      await expect(card('A kite in the wind').locator('video')).toHaveJSProperty('paused', false);
      await face('A boat in fog').hover();
      await expect(history.locator('video')).toHaveCount(0);
      await expect(card('A boat in fog').locator('.poster')).toHaveAttribute(
        'data-blurred',
        'true',
      );
      await face('A paper boat').focus();
      await page.keyboard.press('ArrowRight');
      await expect(face('A kite in the wind')).toBeFocused();
      await expect(card('A kite in the wind').locator('video')).toHaveJSProperty('paused', false);
    });

    await test.step('failures are folded away', async () => {
      expect(await prompts()).not.toContain('A boat that sank');
      await history.getByRole('button', { name: 'Show 1 failed' }).click();
      await expect(cards).toHaveCount(1);
      await expect(cards).toContainText('The GPU was lost. Run it again.');
      await history.getByRole('button', { name: 'Back to the videos' }).click();
      await expect(cards).toHaveCount(8);
    });

    await test.step('search, filter and favourites', async () => {
      const search = history.getByRole('searchbox');
      await search.fill('boat POND');
      await expect(cards).toHaveCount(1);
      await card('A paper boat').getByRole('button', { name: 'Favourite' }).click();
      await search.fill('');
      await expect(cards).toHaveCount(8);
      await history.getByRole('checkbox', { name: 'Favourites' }).check();
      await expect(cards).toHaveCount(1);
      await page.reload();
      await expect(
        card('A paper boat').getByRole('button', { name: 'Favourite', pressed: true }),
      ).toBeVisible();
      await history.getByRole('combobox', { name: 'Status' }).selectOption('Interrupted');
      await expect(cards).toHaveCount(1);
      await expect(cards).toContainText('Interrupted at step 4 of 6');
      await history.getByRole('combobox', { name: 'Status' }).selectOption('All videos');
    });

    const menu = (name: string) => history.getByRole('combobox', { name });

    await test.step('order, date, and a search that finds nothing', async () => {
      await menu('Order').selectOption('By prompt');
      expect((await prompts()).slice(0, 3)).toEqual([
        'A boat in fog',
        'A horse runs',
        'A horse runs',
      ]);
      await menu('Order').selectOption('Oldest first');
      await expect(cards.first()).toContainText('A horse runs');
      await menu('Order').selectOption('Newest first');
      await menu('Date').selectOption('Today');
      await history.getByRole('searchbox').fill('boat');
      await expect(history.getByText('No video matches.')).toBeVisible();
      await history.getByRole('button', { name: 'Clear search and filters' }).click();
      await expect(history.getByRole('searchbox')).toBeFocused();
      await expect(cards).toHaveCount(8);
    });

    await test.step('a neighbour with the same prompt: what differs', async () => {
      await expect(card('A paper boat')).toContainText('Seed 1');
      await expect(cards.filter({ hasText: 'Seed 9' })).toContainText('Steps 5');
    });

    const select = (prompt: string) => card(prompt).getByRole('checkbox', { name: 'Select' });

    await test.step('tags are added to selected videos, searched for and removed', async () => {
      await select('A kite in the wind').check();
      await select('A red balloon').check();
      await history.getByRole('button', { name: 'Tags' }).click();
      const dialog = page.getByRole('dialog', { name: 'Tags of 2 videos' });
      await dialog.getByRole('combobox', { name: 'New tag' }).fill('  in the  Air ');
      await page.keyboard.press('Enter');
      await dialog.getByRole('combobox', { name: 'New tag' }).fill('red');
      await page.keyboard.press('Enter');
      await expect(dialog.getByRole('listitem')).toHaveText(['in the Air', 'red']);
      await expectAccessible(page);
      await dialog.getByRole('button', { name: 'Remove red' }).click();
      await page.keyboard.press('Escape');
      await expect(card('A kite in the wind').locator('.tags')).toHaveText('in the Air');
      await menu('Tag').selectOption('in the Air');
      await expect(cards).toHaveCount(2);
      await menu('Tag').selectOption('');
      await history.getByRole('searchbox').fill('air balloon');
      await expect(cards).toHaveCount(1);
      await history.getByRole('searchbox').fill('');
    });

    await test.step('two selected videos are compared', async () => {
      await select('A red balloon').check();
      await expect(history.getByRole('button', { name: 'Compare' })).toBeHidden();
      await select('A kite in the wind').check();
      await page.emulateMedia({ forcedColors: 'active' });
      await expect(card('A red balloon')).toHaveCSS('outline-style', 'solid');
      await page.emulateMedia({ forcedColors: 'none' });
      await history.getByRole('button', { name: 'Compare' }).click();
      const dialog = page.getByRole('dialog', { name: 'Compare' });
      await expect(dialog.getByRole('row', { name: 'Seed 2 6' })).toBeVisible();
      for (const height of [720, 900]) {
        await page.setViewportSize({ width: 1280, height });
        const screen = await dialog.locator('.screen').boundingBox();
        const controls = await dialog.locator('.compare-controls').boundingBox();
        expect(controls?.y).toBeGreaterThanOrEqual((screen?.y ?? 0) + (screen?.height ?? 0));
      }
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.keyboard.press('Escape');
      await expect(history.getByRole('button', { name: 'Compare' })).toBeFocused();
      await history.getByRole('button', { name: 'Clear', exact: true }).click();
    });

    await test.step('as large as the window: arrow keys, swipes, Escape', async () => {
      await card('A paper boat').getByRole('button', { name: 'Full screen' }).click();
      const viewer = page.getByRole('dialog', { name: /^Video \d of 7/ });
      await expect(viewer).toContainText('A paper boat');
      await expectAccessible(page);
      await expect(viewer.locator('video')).toHaveJSProperty('paused', false);
      await page.keyboard.press('ArrowRight');
      await expect(viewer).toContainText('A kite in the wind');
      await page.keyboard.press('ArrowRight');
      await expect(
        viewer.getByRole('button', { name: 'Show the video', exact: true }),
      ).toBeVisible();
      await swipe(viewer.getByText('A boat in fog'), -120);
      await expect(viewer).toContainText('A red balloon');
      await swipe(viewer.getByText('A red balloon'), 120);
      await expect(viewer).toContainText('A boat in fog');
      await page.keyboard.press('ArrowLeft');
      await page.keyboard.press('Escape');
      await expect(face('A kite in the wind')).toBeFocused();
      await card('A red balloon').getByRole('button', { name: 'Full screen' }).click();
      await viewer.getByRole('button', { name: 'Details' }).click();
      await expect(studio.result.getByText('A red balloon')).toBeVisible();
    });

    await test.step('a range is selected and downloaded as a ZIP', async () => {
      await select('A paper boat').check();
      await select('A boat in fog').click({ modifiers: ['Shift'] });
      await expect(history.getByText('3 selected')).toBeVisible();
      await expectAccessible(page);
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        history.getByRole('button', { name: 'Download as ZIP' }).click(),
      ]);
      expect(download.suggestedFilename()).toBe('kinora-videos.zip');
      const zip = await readFile(await download.path());
      for (const seed of [1, 2, 3]) expect(zip.includes(`kinora-${seed}-00000000.mp4`)).toBe(true);
      const stored = Buffer.from(video);
      // The frames as they are stored, each file with its settings.
      expect(timesIn(zip, stored.subarray(stored.indexOf('mdat')))).toBe(3);
      for (const prompt of ['A paper boat on a pond', 'A kite in the wind', 'A boat in fog']) {
        expect(timesIn(zip, Buffer.from(`"prompt":"${prompt}"`))).toBe(1);
        expect(stored.includes(prompt)).toBe(false);
      }
    });

    await test.step('deletions are undone one after another, and the focus stays there', async () => {
      await history.getByRole('button', { name: 'Delete', exact: true }).first().click();
      await expect(cards).toHaveCount(5);
      await expect(face('A lantern swings')).toBeFocused();
      await face('A red balloon').focus();
      await page.keyboard.press('Delete');
      await expect(cards).toHaveCount(4);
      await expect(face('A lighthouse at night')).toBeFocused();
      const toast = page.getByRole('status').filter({ hasText: 'deleted' });
      await expect(toast).toContainText('4 videos deleted.');
      await page.keyboard.press('Control+z');
      await expect(face('A red balloon')).toBeFocused();
      await toast.getByRole('button', { name: 'Undo' }).click();
      await expect(face('A paper boat')).toBeFocused();
      await expect(cards).toHaveCount(8);
      await expect(toast).toBeHidden();
      await expect(card('A paper boat').locator('img')).toBeVisible();
    });
  },
);

/** Moves a finger over an element. @param by CSS pixels to the right */
async function swipe(element: Locator, by: number): Promise<void> {
  await element.evaluate((target, by) => {
    const touch = (clientX: number) => new Touch({ identifier: 1, target, clientX, clientY: 300 });
    const [from, to] = [touch(200), touch(200 + by)];
    const send = (type: string, touches: Touch[], changedTouches: Touch[]) =>
      target.dispatchEvent(new TouchEvent(type, { touches, changedTouches, bubbles: true }));
    send('touchstart', [from], [from]);
    send('touchend', [], [to]);
  }, by);
}

function timesIn(haystack: Buffer, needle: Buffer): number {
  let count = 0;
  for (let at = haystack.indexOf(needle); at >= 0; at = haystack.indexOf(needle, at + 1)) count++;
  return count;
}

interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  /** CPU time of the thread in microseconds. */
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

/**
 * The tasks of the page's main thread while `work` goes on, in milliseconds of CPU time, longest first: what other
 * processes of the machine do does not count.
 */
async function tasksWhile(page: Page, work: () => Promise<void>): Promise<number[]> {
  const browser = page.context().browser();
  if (!browser) throw new Error('no browser');
  await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline'] });
  await work();
  const trace: { traceEvents: TraceEvent[] } = JSON.parse(String(await browser.stopTracing()));
  const events = trace.traceEvents;
  const mains = events.filter(
    ({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain',
  );
  return events
    .filter(({ pid, tid }) => mains.some((main) => main.pid === pid && main.tid === tid))
    .flatMap(({ name, tdur }) => (/RunTask$/.test(name) && tdur ? [tdur / 1000] : []))
    .sort((a, b) => b - a);
}

test('1,000 past videos: typing and scrolling stay fluid', full, async ({ studio, page }) => {
  const many = Array.from({ length: 1000 }, (_, n) =>
    finishedRow(n + 1, { prompt: `A boat, take ${n + 1}` }, { videoFile: 'boat.mp4' }),
  );
  await storePredictions(page, many, await makeVideo({ width: 160, height: 96 }), true);
  await studio.open();
  const { history } = studio;
  await expect(history.getByText('1000 videos')).toBeVisible();
  const cards = history.getByRole('listitem');
  expect(await cards.count()).toBeLessThan(60);

  const search = history.getByRole('searchbox');
  const measured = {
    'typing the prompt': await tasksWhile(page, () =>
      studio.prompt.pressSequentially('A boat drifts over a pond', { delay: 40 }),
    ),
    'typing a search': await tasksWhile(page, async () => {
      // 271 of the numbers have a nine.
      await search.pressSequentially('take 9', { delay: 40 });
      await expect(history.getByText('271 videos')).toBeVisible();
    }),
    'removing the search': await tasksWhile(page, async () => {
      await search.fill('');
      await expect(history.getByText('1000 videos')).toBeVisible();
    }),
    scrolling: await tasksWhile(page, async () => {
      for (let at = 0; at < 60; at++) {
        await page.mouse.wheel(0, 600);
        await page.waitForTimeout(16);
      }
    }),
  };
  for (const [what, tasks] of Object.entries(measured)) {
    const [longest = 0, ...others] = tasks.map(Math.round);
    console.log(`${what}: longest tasks ${longest}, ${others.slice(0, 4).join(', ')} ms`);
  }
  for (const [what, tasks] of Object.entries(measured)) expect(tasks[0], what).toBeLessThan(200);
  await expect(cards.first()).toHaveAttribute('aria-setsize', '1000');
  expect(Number(await cards.last().getAttribute('aria-posinset'))).toBeGreaterThan(100);
});
