import { expect, full, picturePath, test } from './support/fixtures';

const prompt = 'A kite climbs';

test(
  'a pause holds the steps; a cancelled run can be run again',
  full,
  async ({ studio, page }) => {
    await studio.fill({ image: picturePath, prompt, steps: 40 });
    await studio.chooseCpu();
    await studio.generate();
    await studio.waitForStep(1, 40);
    await studio.progress.getByRole('button', { name: 'Pause' }).click();
    await expect(studio.progress.getByRole('heading', { name: 'Paused' })).toBeVisible();
    const measure = studio.stepLine(40);
    const held = await measure.textContent();
    await page.waitForTimeout(1500);
    expect(await measure.textContent()).toBe(held);
    await studio.progress.getByRole('button', { name: 'Resume' }).click();
    await expect(measure).not.toHaveText(held ?? '');
    await studio.progress.getByRole('button', { name: 'Cancel' }).click();
    await expect(page.getByRole('region', { name: 'Cancelled' })).toBeVisible();
    await expect(studio.generateButton).toBeEnabled();
    await studio.failure.getByRole('button', { name: 'Run again' }).click();
    await studio.waitForStep(1, 40);
    await studio.progress.getByRole('button', { name: 'Cancel' }).click();
    await expect(studio.failure).toBeVisible();
  },
);

test('a run cut off by a reload says so and can be run again', full, async ({ studio }) => {
  await studio.fill({ image: picturePath, prompt, steps: 40 });
  await studio.chooseCpu();
  await studio.generate();
  await studio.waitForStep(1, 40);
  await studio.reload();
  const interrupted = studio.failure.locator('[data-code="INTERRUPTED"]');
  await expect(interrupted).toContainText('closed or reloaded');
  await studio.failure.getByRole('button', { name: 'Run again' }).click();
  await studio.waitForStep(1, 40);
  await studio.progress.getByRole('button', { name: 'Finish early' }).click();
  await studio.waitForResult();
  await expect(studio.result).toContainText('finished early');
  expect((await studio.play()).width).toBe(1280);
  await expect(studio.history.getByText(prompt)).toHaveCount(2);
});
