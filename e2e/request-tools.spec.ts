import { f32, safetensorsBytes } from '../lib/weights/testing/files';
import {
  expect,
  expectAccessible,
  full,
  loraOfOtherBase,
  loraPath,
  payload,
  test,
} from './support/fixtures';

test(
  'a request is put together by buttons: preset, example, camera, negative prompt, earlier prompts',
  full,
  async ({ studio, page }) => {
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
    const isOn = async (name: string, on: boolean) =>
      expect(page.getByRole('button', { name, exact: true })).toHaveAttribute(
        'aria-pressed',
        `${on}`,
      );

    await test.step('an example brings picture, prompt and size', async () => {
      await press('Examples');
      await press('Street in the rain');
      await expect(page.getByRole('img', { name: /^Start image/ })).toBeVisible();
      await expect(studio.prompt).toHaveValue(/^A narrow city street/);
      await expect(page.getByRole('radio', { name: /^Portrait/ })).toBeChecked();
    });

    await test.step('a camera move is added, and taken out again', async () => {
      await press('Camera');
      await isOn('Tilt up', true);
      await press('Tilt up');
      await press('Orbit');
      await expect(studio.prompt).toHaveValue(
        /film grain\. The camera orbits around the subject\.$/,
      );
      await isOn('Orbit', true);
      await isOn('Tilt up', false);
      await expect(page.getByRole('button', { name: 'Orbit', exact: true })).toBeFocused();
      await studio.prompt.press('Control+z');
      await expect(studio.prompt).toHaveValue(/film grain\.$/);
      await studio.prompt.press('Control+Shift+z');
      await isOn('Orbit', true);
    });

    await test.step('the model’s own negative prompt and another list', async () => {
      const negative = await studio.field('Negative prompt');
      await expect(negative).toHaveValue(/^色调艳丽，.*倒着走$/);
      await isOn('The model’s own', true);
      await press('Text');
      await expect(negative).toHaveValue(/^色调艳丽，.*倒着走, subtitles, text, logo, watermark$/);
      await press('The model’s own');
      await expect(negative).toHaveValue('subtitles, text, logo, watermark');
    });

    await test.step('a preset is saved, renamed, chosen after a reload, and deleted', async () => {
      await (await studio.field('Flow shift')).fill('3');
      await press('Save and edit …');
      await page.getByLabel('Name of the new preset').fill('Rain');
      await page.getByLabel('Name of the new preset').press('Enter');
      await isOn('Rain', true);
      await page.getByLabel('Name of Rain').fill('Rainy street');
      await page.getByLabel('Name of Rain').press('Enter');
      await isOn('Rainy street', true);
      await page.getByRole('radio', { name: 'Best' }).check();
      await isOn('Rainy street', false);
      await expect(studio.steps).toHaveValue('40');
      await page.reload();
      await studio.openAdvanced();
      await press('Rainy street');
      await expect(studio.steps).toHaveValue('30');
      await expect(await studio.field('Flow shift')).toHaveValue('3');
      await press('Save and edit …');
      await press('Delete Rainy street');
      await expect(page.getByRole('button', { name: 'Rainy street' })).toHaveCount(0);
      await expect(page.getByText('There are no videos yet.')).toHaveCount(0);
      await press('Earlier prompts');
      await expect(page.getByText('There are no videos yet.')).toBeVisible();
    });
  },
);

test(
  'LoRAs: several files at once, one for another base is refused, order, and trigger words',
  full,
  async ({ studio, page }) => {
    const delta = f32([128], Array<number>(128).fill(0));
    const bytes = safetensorsBytes(
      { 'blocks.0.ffn.net.0.proj.diff_b': delta },
      { trigger_words: 'sks style' },
    );
    await studio.openAdvanced();
    const files = page.getByLabel('LoRA files');
    const rows = page.getByRole('button', { name: /^Remove / });
    const names = () => rows.evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')));
    await files.setInputFiles([loraOfOtherBase(), loraPath('a_peft')]);
    await expect(studio.problem('LORA_WRONG_BASE')).toContainText('wrong_base_1.3b.safetensors');
    await expect(rows).toHaveCount(1);
    await files.setInputFiles([
      payload('style.safetensors', Buffer.from(bytes), 'application/octet-stream'),
    ]);
    await expect(rows).toHaveCount(2);
    await expect(studio.problem('LORA_WRONG_BASE')).toHaveCount(0);

    await page.getByRole('button', { name: 'Move style.safetensors up' }).press('Enter');
    await expect.poll(names).toEqual(['Remove style.safetensors', 'Remove a_peft.safetensors']);
    await expect(page.getByRole('button', { name: 'Move style.safetensors up' })).toBeFocused();

    await studio.prompt.fill('a boat');
    await page.getByRole('button', { name: 'Add sks style to the prompt' }).click();
    await expect(studio.prompt).toHaveValue('a boat, sks style');

    // They are for the bundled model, and do not fit another one.
    await page.getByLabel('Model', { exact: true }).selectOption('wan2.2-ti2v-5b');
    await expect(page.getByText(/made for another base model/).first()).toBeVisible();
  },
);

test(
  'the prompt is counted in tokens; the request as code leads to the documentation; everything is accessible',
  full,
  async ({ studio, page, context }) => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await test.step('tokens, and what the model does not read', async () => {
      const count = page.getByText(/^\d+ of 512 tokens$/);
      const marked = page.locator('mark');
      await expect(count).toHaveCount(0);
      await studio.prompt.fill(`A cat ${'walks on and on '.repeat(45)}`);
      await expect(count).toBeVisible();
      await expect(marked).toHaveCount(0);
      await studio.prompt.fill('a cat walks');
      await expect(count).toHaveCount(0);
      await studio.prompt.fill(`A boat ${'sails on and on '.repeat(200)}`);
      await expect(marked).toBeVisible();
      await expect(page.getByText(/It does not read what is marked/)).toBeVisible();
      await expect(page.locator('.token-text')).toHaveText(/^… .*sails on and on/);
    });
    for (const tool of ['Camera', 'Earlier prompts', 'Examples']) {
      await page.getByRole('button', { name: tool, exact: true }).click();
      await expectAccessible(page);
    }
    await page.getByRole('button', { name: 'Copy as code' }).click();
    const dialog = page.getByRole('dialog', { name: 'This request as code' });
    for (const [name, text] of [
      ['curl', 'curl -sSf'],
      ['JavaScript', "from 'wavespeed'"],
      ['Python', 'import urllib.request'],
      ['Command', 'npm run generate --'],
    ] as const) {
      await dialog.getByRole('button', { name, exact: true }).click();
      await expect(dialog.locator('pre')).toContainText(text);
      await expect(dialog.locator('pre')).toContainText('A boat sails');
      await dialog.getByRole('button', { name: `Copy the request as ${name}` }).click();
      await expect(dialog.getByText('Copied')).toBeVisible();
      expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(text);
    }
    await dialog.getByRole('button', { name: 'Python', exact: true }).click();
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await studio.prompt.fill('a cat');
    await expect(page.locator('mark')).toHaveCount(0);
    await page.getByRole('button', { name: 'Copy as code' }).click();
    await dialog.getByRole('link', { name: 'documentation' }).click();
    await expect(page.getByRole('heading', { name: 'Quick start' })).toBeVisible();
  },
);
