import { StudioPage } from './pages/studio-page';
import {
  expect,
  expectAccessible,
  full,
  payload,
  picture,
  picturePath,
  test,
} from './support/fixtures';

/**
 * Fills in a video and starts it. It waits for its model's weights, so that there is time to look at what waits.
 *
 * @returns lets it go on
 */
async function startHeldRun(studio: StudioPage): Promise<() => void> {
  let goOn = () => {};
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  await studio.page.route('**/models/tiny/transformer/**', async (route) => {
    await held;
    await route.continue();
  });
  await studio.chooseCpu();
  await studio.fill({ image: picturePath, prompt: 'The first', steps: 40 });
  await studio.generate();
  await studio.steps.fill('1');
  return goOn;
}

async function addToQueue(studio: StudioPage, prompt: string): Promise<void> {
  const count = await studio.waiting.count();
  await studio.prompt.fill(prompt);
  await studio.generateButton.click();
  await expect(studio.waiting).toHaveCount(count + 1);
}

test(
  'variations and what is generated meanwhile wait in the queue, are changed there, and run after a reload',
  full,
  async ({ studio, page }) => {
    test.slow();
    const { queue, waiting } = studio;
    const goOn = await startHeldRun(studio);
    await expect(queue).toHaveCount(0);
    await test.step('variations are added with their values, and say what is wrong with them', async () => {
      await (await studio.field('Seed')).fill('7');
      await page.getByText('Variations', { exact: true }).click();
      await page.getByRole('button', { name: '4 seeds' }).click();
      await expect(waiting).toHaveText([/seed 7/, /seed 8/, /seed 9/, /seed 10/]);
      await queue.getByRole('button', { name: 'Remove all' }).click();
      await page.getByLabel('Vary steps').fill('1, 41');
      await expect(page.getByLabel('Vary steps')).toHaveAccessibleDescription(/from 1 to 40/);
      await page.getByLabel('Vary steps').fill('1, 2');
      await page.getByLabel('Vary guidance').fill('3 4.5');
      await page.getByRole('button', { name: 'Add 4 videos to the queue' }).click();
      await expect(waiting).toHaveText([
        /1 steps · guidance 3 .* seed 7/,
        /1 steps · guidance 4.5 /,
        /2 steps · guidance 3 /,
        /2 steps · guidance 4.5 /,
      ]);
      await queue.getByRole('button', { name: 'Remove all' }).click();
      await expect(waiting).toHaveCount(0);
      await page.getByLabel('Vary steps').fill('');
      await page.getByLabel('Vary guidance').fill('');
    });

    await addToQueue(studio, 'The second');
    await addToQueue(studio, 'The third');
    await expect(page.getByRole('link', { name: '2 videos wait' })).toBeVisible();
    const order = (...prompts: readonly string[]) =>
      expect(waiting.locator('.queue-prompt')).toHaveText([...prompts]);

    await test.step('reorder by keyboard and by pointer', async () => {
      const third = waiting.getByRole('button', { name: /^Move: .*The third$/ });
      await third.press('ArrowUp');
      await order('The third', 'The second');
      await expect(third).toBeFocused();
      const from = await third.boundingBox();
      const to = await waiting.last().boundingBox();
      if (!from || !to) throw new Error('the rows are not there');
      await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2);
      await page.mouse.down();
      await page.mouse.move(from.x + from.width / 2, to.y + to.height - 4, { steps: 4 });
      await page.mouse.up();
      await order('The second', 'The third');
      await third.press('Home');
      await order('The third', 'The second');
    });

    await test.step('edit, duplicate and remove', async () => {
      await studio.prompt.fill('Not yet finished');
      await waiting.last().getByRole('button', { name: 'Edit' }).click();
      await expect(studio.prompt).toHaveValue('The second');
      await studio.prompt.fill('The second, edited');
      await page.getByRole('button', { name: 'Save changes' }).click();
      await order('The third', 'The second, edited');
      await expect(studio.prompt).toHaveValue('Not yet finished');
      await waiting.first().getByRole('button', { name: 'Duplicate' }).click();
      await order('The third', 'The third', 'The second, edited');
      await waiting.first().getByRole('button', { name: 'Remove' }).click();
      await order('The third', 'The second, edited');
      const undo = queue.getByRole('button', { name: 'Undo' });
      await expect(undo).toBeFocused();
      await undo.press('Enter');
      await order('The third', 'The third', 'The second, edited');
      await waiting.first().getByRole('button', { name: 'Remove' }).click();
      await expect(undo).toHaveCount(0, { timeout: 20_000 });
    });
    await expectAccessible(page);

    await test.step('pause, reload, run all', async () => {
      await queue.getByRole('button', { name: 'Pause after this one' }).first().click();
      await expect(queue).toContainText('The queue pauses when this video is done.');
      goOn();
      await studio.cancel();
      await expect(queue).toContainText('The queue is paused.');
      await page.reload();
      await order('The third', 'The second, edited');
      await queue.getByRole('button', { name: 'Run all' }).click();
      await expect(studio.progress).toBeVisible();
      await expect(queue).toHaveCount(0, { timeout: 120_000 });
      await studio.waitForResult();
      await expect(studio.result).toContainText('The second, edited');
      await expect(studio.history.getByText('The third')).toBeVisible();
    });
  },
);

test(
  'when the tab that computes is gone, another one finds its run, and goes on with what waits',
  full,
  async ({ studio, page, context }) => {
    await startHeldRun(studio);
    await addToQueue(studio, 'The second');
    const other = new StudioPage(await context.newPage());
    await other.open();
    await expect(other.queue).toContainText('Another tab of this browser makes this one.');
    await expect(other.waiting).toHaveText([/The second/]);
    await page.close();
    await other.waitForResult();
    await expect(other.result).toContainText('The second');
    await expect(other.queue).toHaveCount(0);
    await expect(other.history.getByRole('button', { name: 'Show 1 failed' })).toBeVisible();
  },
);

test('of several images, Generate makes a video each', full, async ({ studio, page }) => {
  await studio.chooseCpu();
  await studio.fill({ image: picturePath, prompt: 'A lantern', steps: 40 });
  await expect(studio.generateButton).toHaveText('Generate');
  const three = ['a.png', 'b.png', 'c.png'].map((name) => payload(name, picture()));
  await studio.image.setInputFiles(three);
  await expect(studio.generateButton).toHaveText('Generate 3 videos');
  await page.getByRole('button', { name: 'Only the first one' }).click();
  await expect(studio.generateButton).toHaveText('Generate');
  await studio.image.setInputFiles(three);
  await page.getByRole('button', { name: 'Remove', exact: true }).first().click();
  await expect(studio.generateButton).toHaveText('Generate');
  await studio.image.setInputFiles(three);
  await expect(studio.generateButton).toHaveText('Generate 3 videos');
  await studio.prompt.press('ControlOrMeta+Enter');
  await expect(studio.progress).toBeVisible();
  await expect(studio.waiting).toHaveCount(2);
  await expect(studio.generateButton).toHaveText('Add to queue · 2 waiting');
  await studio.queue.getByRole('button', { name: 'Remove all' }).click();
  await studio.cancel();
});
