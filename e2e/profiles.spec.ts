import { expect, expectAccessible, test } from './support/fixtures';

test('the form says what a level does and greys what it does not use', async ({ studio, page }) => {
  const form = page.getByRole('form', { name: 'Video settings' });
  const guidance = await studio.field('Guidance');
  await guidance.fill('4.5');
  await studio.steps.fill('12');
  await expect(page.getByRole('radio', { name: 'Standard' })).not.toBeChecked();
  await expect(form.getByLabel('Full decode')).toHaveCount(0);
  await form.getByLabel('Faster, nearly the same').check();
  await expect(form).toContainText('Standard: 12 steps, guidance 4.5, EasyCache, full decoder.');

  await page.getByRole('radio', { name: 'Draft' }).check();
  const sentence = 'Draft: 3 steps with Tiny few-step, no guidance, tiny decoder.';
  await expect(form).toContainText(sentence);
  await expect(studio.steps).toHaveValue('3');
  await expect(studio.steps).not.toBeEditable();
  await expect(studio.steps).toHaveAccessibleDescription(/always takes 3 steps/);
  await expect(guidance).toHaveAccessibleDescription(/runs without guidance/);
  await expect(form.getByLabel('Faster, nearly the same')).toHaveCount(0);
  await expectAccessible(page);
  await form.getByLabel('Full decode').check();
  await expect(form).toContainText('no guidance, full decoder.');

  await test.step('another level sets its steps, and leaves the rest', async () => {
    await page.getByRole('radio', { name: 'Best' }).check();
    await expect(studio.steps).toHaveValue('40');
    await page.getByRole('radio', { name: 'Standard' }).check();
    await expect(studio.steps).toHaveValue('30');
    await expect(guidance).toHaveValue('4.5');
    await expect(studio.steps).toBeEditable();
  });
});

test('the licence of an adapter is said before it is downloaded', async ({ models, page, hub }) => {
  await models.setHub(hub.url);
  const real = models.model('Wan2.2 TI2V 5B');
  await real.getByRole('button', { name: 'Download' }).click();
  const adapters = models.dialog.getByRole('group', { name: /^Few-step adapter/ });
  const choice = (name: string) => adapters.getByRole('radio', { name: new RegExp(`^${name}`) });
  await expect(choice('FastWan')).toBeChecked();
  await expect(models.dialog).not.toContainText('Wan22-Turbo');
  await choice('Turbo').check();
  await expect(adapters).toContainText('CC BY-NC-SA 4.0: it may not be used commercially.');
  await expect(models.dialog.getByRole('link', { name: 'CC BY-NC-SA 4.0' })).toBeVisible();
  await expectAccessible(page);
  await choice('None').check();
  await expect(choice('None')).toBeChecked();
  await expect(models.dialog.getByRole('link', { name: 'CC BY-NC-SA 4.0' })).toHaveCount(0);
});
