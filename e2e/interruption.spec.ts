import type { Page } from 'playwright';
import { StudioPage } from './pages/studio-page';
import { databaseRows } from './support/database';
import { expect, expectAccessible, full, picturePath, test } from './support/fixtures';

const prompt = 'A kite climbs';

// The steps of a short video end before a click does, under load.
test.use({ longVideos: true });

/** Starts a run on the CPU and waits until it can be resumed. */
async function startSavedRun(studio: StudioPage, steps: number, seed = 7): Promise<void> {
  await studio.fill({ image: picturePath, prompt, steps });
  await (await studio.field('Seed')).fill(String(seed));
  await studio.chooseCpu();
  await studio.generate();
  const saved = () => hasCheckpoint(studio.page);
  await expect.poll(saved, { intervals: [50], timeout: 120_000 }).toBe(true);
}

/** Whether the record of a run says that it is saved. */
async function hasCheckpoint(page: Page): Promise<boolean> {
  return (await databaseRows(page, 'predictions')).some((row) => 'checkpoint' in row);
}

test(
  'a tab learns at once that the tab which computed is gone',
  full,
  async ({ studio, page, context }) => {
    test.slow();
    // It is open before the run begins, and once more for the next one.
    const other = new StudioPage(await context.newPage());
    await other.open();
    await startSavedRun(studio, 40);
    await expect(other.queue).toContainText('Another tab of this browser makes this one.');
    await page.close();
    const { interrupted } = other;
    await expect(interrupted).toContainText('closed or reloaded', { timeout: 10_000 });
    await expect(other.queue).toHaveCount(0);

    const third = new StudioPage(await context.newPage());
    await third.open();
    await interrupted.getByRole('button', { name: 'Resume' }).click();
    await expect(other.progress).toBeVisible();
    await expect(third.queue).toContainText('Another tab of this browser makes this one.');
    const crashed = other.page.waitForEvent('crash');
    const session = await context.newCDPSession(other.page);
    // No answer comes from a page that has crashed.
    void session.send('Page.crash').catch(() => {});
    await crashed;
    await expect(third.interrupted).toContainText('closed or reloaded', { timeout: 10_000 });
    await other.page.close();
    await third.interrupted.getByRole('button', { name: 'Resume' }).click();
    await third.waitForResult();
    await expect(third.result).toContainText(/after (an interruption|interruptions)/);
    expect((await third.play()).width).toBe(1280);
  },
);

test(
  'a pause survives the tab, and the queue waits; a paused run can be deleted and brought back; cancelled, it gives the stage back',
  full,
  async ({ studio, page }) => {
    await studio.fill({ image: picturePath, prompt, steps: 40 });
    await (await studio.field('Duration')).fill('10');
    await studio.chooseCpu();
    await studio.generate();
    const { interrupted, progress, waiting } = studio;
    await studio.prompt.fill('The next');
    await studio.generateButton.click();
    await expect(waiting).toHaveCount(1);
    await progress.getByRole('button', { name: 'Pause', exact: true }).click();
    const heading = interrupted.getByRole('heading');
    await expect(heading).toHaveText(/^Paused at step \d+ of 40, clip 1 of 2$/);
    await expect(heading).toBeFocused();
    await expect(studio.queue).toContainText('The queue is paused.');
    await expectAccessible(page);
    await test.step('deleting it can be undone', async () => {
      await interrupted.getByRole('button', { name: 'Delete' }).click();
      await expect(interrupted).toBeHidden();
      await page.getByRole('button', { name: 'Undo' }).click();
      await expect(interrupted).toBeVisible();
    });
    await studio.reload();
    const paused = Number(/\d+/.exec((await heading.textContent()) ?? ''));
    await interrupted.getByRole('button', { name: 'Resume' }).click();
    await studio.waitForStep(paused + 1, 40);
    // Its pause was that of the queue.
    await expect(studio.queue).not.toContainText('The queue is paused.');
    await studio.queue.getByRole('button', { name: 'Remove', exact: true }).click();
    await studio.cancel();
    await test.step('where nothing was before, the introduction is back', async () => {
      await expect(page.getByRole('region', { name: 'One image becomes a video' })).toBeVisible();
      await expect(page.locator('#main')).toBeFocused();
      await studio.history.getByRole('button', { name: 'Show 1 cancelled' }).click();
      await studio.history.getByRole('button', { name: 'Run again' }).click();
    });
    await studio.waitForStep(1, 40);
    await studio.cancel();
  },
);
