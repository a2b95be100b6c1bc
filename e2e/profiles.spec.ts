import { expect, expectAccessible, full, test } from './support/fixtures';

test(
  'the form says what a level does and greys what it does not use',
  full,
  async ({ studio, page }) => {
    const form = page.getByRole('form', { name: 'Video settings' });
    const guidance = await studio.field('Guidance');
    await guidance.fill('4.5');
    await studio.steps.fill('12');
    await expect(page.getByRole('radio', { name: 'Standard' })).not.toBeChecked();
    await expect(form.getByLabel('Full decode')).toHaveCount(0);
    // It has no ratios for MagCache.
    await expect(form.getByLabel('Faster, nearly the same')).toHaveCount(0);
    await expect(form.getByRole('slider', { name: /^Strength/ })).toHaveCount(0);
    await form.getByLabel('Half the time, nearly the same').check();
    await form.getByRole('slider', { name: 'Strength of Tiny guidance' }).press('ArrowLeft');
    await expect(form).toContainText(
      'Standard: 12 steps with Tiny guidance at 0.95, no guidance, full decoder.',
    );
    await expect(guidance).toHaveAccessibleDescription(
      'Tiny guidance takes the place of guidance.',
    );

    await page.getByRole('radio', { name: 'Draft' }).check();
    const sentence = 'Draft: 3 steps with Tiny few-step at 0.95, no guidance, tiny decoder.';
    await expect(form).toContainText(sentence);
    await expect(studio.steps).toHaveValue('3');
    await expect(studio.steps).not.toBeEditable();
    await expect(studio.steps).toHaveAccessibleDescription(/always takes 3 steps/);
    await expect(guidance).toHaveAccessibleDescription(/runs without guidance/);
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
  },
);

test(
  'the licences of adapters are said before they are downloaded',
  full,
  async ({ models, page, hub }) => {
    await models.setHub(hub.url);
    const real = models.model('Wan2.2 TI2V 5B');
    await real.getByRole('button', { name: 'Download' }).click();
    await models.openOptions();
    const adapters = models.dialog.getByRole('group', { name: /^Few-step adapter/ });
    const choice = (name: string) => adapters.getByRole('radio', { name: new RegExp(`^${name}`) });
    await expect(choice('FastWan')).toBeChecked();
    await expect(models.dialog).not.toContainText(/Turbo|5B-few-step|5B-cfg/);
    await choice('LongLive-Plug').check();
    await expect(adapters).toContainText('Licence: Apache-2.0.');
    await expect(models.dialog).toContainText(
      /5B-few-step, \S+5B-cfg, \S+ \(Licence: Apache-2\.0\)/,
    );
    const guidance = models.dialog.getByLabel('LongLive-Plug guidance');
    // It runs beside the other one.
    await expect(guidance).toBeChecked();
    await expect(guidance).toBeDisabled();
    await expectAccessible(page);
    await choice('None').check();
    await expect(guidance).not.toBeChecked();
    await expect(models.dialog).not.toContainText(/FastWan\/|5B-few-step|5B-cfg/);
    await guidance.check();
    await expect(models.dialog).toContainText('5B-cfg');
  },
);
