import { ModelsPage } from './pages/models-page';
import { StudioPage } from './pages/studio-page';
import {
  expect,
  full,
  loraOfOtherBase,
  loraPath,
  picturePath,
  test,
  withSilentConsole,
} from './support/fixtures';
import { goldenFolder } from './support/golden-folder';

test('the page shows what is here, and what a download would be before it is one', async ({
  models,
  page,
}) => {
  const tiny = models.model('Tiny (random weights)');
  await expect(tiny).toContainText('Comes with Kinora');
  await models.waitForStatus(tiny, 'Ready');
  // What works here is said first; nobody is led to what is too slow.
  await expect(models.device.getByRole('status')).toContainText(
    'Tiny (random weights), works here.',
  );
  await expect(models.device.getByRole('link')).toHaveText(
    'Make a video with Tiny (random weights)',
  );
  const row = models.device.getByRole('row', { name: /^Wan2.2 TI2V 5B/ });
  await expect(row).toContainText('Too slow on this device: use a computer with a graphics card');
  const real = models.model('Wan2.2 TI2V 5B');
  await models.waitForStatus(real, 'Not downloaded');
  await expect(real.getByRole('link', { name: 'Apache-2.0' })).toHaveAttribute('href', /^https:/);
  await expect(real.getByRole('button', { name: 'Download' })).toBeEnabled();
  await expect(models.storage).toContainText(/in use, .* free/);
  await expect(page).toHaveTitle('Models · Kinora');
});

test(
  'a card is asked for its memory, and the model that fits it is one click away',
  full,
  async ({ page, hub }) => {
    const models = new ModelsPage(page);
    const { device } = models;
    const answer = device.getByRole('status');
    const row = device.getByRole('row', { name: /^Wan2.2 TI2V 5B/ });
    let gigabytes = 6;
    await page.route('**/*.js', async (route) => {
      const response = await route.fetch();
      const body = `;(${cardOf})(${gigabytes * 1e9});${await response.text()}`;
      await route.fulfill({ response, body });
    });
    await models.open();
    await expect(answer).toHaveText(
      /^Your card: nvidia ampere, about 5\.\d GiB\. Wan2\.2 TI2V 5B in 4-bit fits it; roughly .* for a draft of 5 s\.$/,
    );
    await expect(row).toContainText('8-bit: 1.6 – 7.2 GiB ✓ fits, slower');
    await expect(row).toContainText('4-bit: 1.4 – 5.0 GiB ✓ fits');
    gigabytes = 1;
    await models.open();
    await expect(answer).toContainText('is too slow or too small for the large models.');
    await expect(row).toContainText('4-bit: 1.4 – 5.0 GiB ✗ too large');
    gigabytes = 24;
    await models.open();
    await expect(answer).toContainText('at least 7.2 GiB. Wan2.2 TI2V 5B in 8-bit fits it;');
    await models.setHub(hub.url);
    await device.getByRole('button', { name: 'Download 13.5 GB' }).click();
    await expect(page.getByRole('dialog', { name: 'Download Wan2.2 TI2V 5B' })).toBeVisible();
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  },
);

/** Lets the browser's emulated GPU pass for a card with so many bytes. No machine of the tests has one. */
function cardOf(most: number): void {
  if (!('GPUAdapter' in globalThis) || Object.hasOwn(GPUAdapter.prototype, 'kinora')) return;
  const info = { vendor: 'nvidia', architecture: 'ampere', device: '', description: '' };
  const card = { ...info, isFallbackAdapter: false };
  Object.defineProperties(GPUAdapter.prototype, { kinora: {}, info: { get: () => card } });
  // Threads that compute keep what they have.
  if (!('document' in globalThis)) return;
  let held = 0;
  let isFull = false;
  const { createBuffer, popErrorScope } = GPUDevice.prototype;
  GPUDevice.prototype.createBuffer = function (descriptor) {
    held += descriptor.size;
    isFull ||= held > most;
    const buffer = createBuffer.call(this, { ...descriptor, size: 16 });
    const destroy = buffer.destroy.bind(buffer);
    buffer.destroy = () => {
      held -= descriptor.size;
      return destroy();
    };
    return buffer;
  };
  GPUDevice.prototype.popErrorScope = async function () {
    const error = isFull ? ({ message: 'full' } as GPUError) : await popErrorScope.call(this);
    isFull = false;
    return error;
  };
}

test('users begin with the demonstration model, and see none of the tests', async ({
  browser,
  baseURL,
}) => {
  const page = await browser.newPage({ ...(baseURL && { baseURL }) });
  await withSilentConsole(page, async () => {
    const studio = new StudioPage(page);
    await studio.open();
    const picker = page.getByLabel('Model', { exact: true });
    await expect(picker).toHaveValue('mini');
    expect(await picker.locator('option').allTextContents()).toEqual([
      'Mini (demonstration)',
      'Wan2.2 TI2V 5B',
      'Wan2.2 I2V A14B',
      'Wan2.1 I2V 14B 480P',
      'Wan2.1 I2V 14B 720P',
    ]);
    // Its own defaults, until the user chooses others.
    await expect(studio.steps).toHaveValue('4');
    await expect(await studio.field('Guidance')).toHaveValue('1');
    await (await studio.field('Guidance')).fill('3');
    const example = page.getByRole('button', { name: /^Use mini-sepia/ });
    await example.click();
    await expect(page.getByLabel('mini-sepia.safetensors, scale')).toHaveValue('1');
    await expect(example).toHaveCount(0);
    await page.getByRole('button', { name: 'Remove mini-sepia.safetensors' }).click();
    await picker.selectOption('wan2.2-ti2v-5b');
    await expect(studio.steps).toHaveValue('30');
    await expect(await studio.field('Guidance')).toHaveValue('3');
    const pages = page.getByRole('navigation', { name: 'Pages' });
    await pages.getByRole('link', { name: 'Models' }).click();
    const models = new ModelsPage(page);
    await models.waitForStatus(models.model('Mini (demonstration)'), 'Ready');
    await expect(models.model('Tiny (random weights)')).toHaveCount(0);
    await page.getByRole('link', { name: 'How it was made' }).click();
    await expect(page.getByRole('heading', { name: 'Mini', exact: true })).toBeVisible();
  });
  await page.close();
});

test(
  'a model from a local folder and a LoRA file are taken, checked and deleted',
  full,
  async ({ models }) => {
    test.slow();
    await test.step('the folder becomes a model', async () => {
      await models.addFolder(await goldenFolder(test.info().outputPath('golden')));
      await models.waitForStatus(models.added, 'Ready');
      await expect(models.added).toContainText('Verified');
    });

    await test.step('it is there after a reload, and every byte is as it was written', async () => {
      await models.open();
      await models.waitForStatus(models.added, 'Ready');
      await models.added.getByRole('button', { name: 'Check every byte' }).click();
      await expect(models.added).toContainText('Every byte was compared with its checksum.');
      await models.waitForStatus(models.added, 'Ready');
    });

    await test.step('it can be deleted, after a question', async () => {
      const remove = models.added.getByRole('button', { name: 'Remove from the list' });
      await remove.click();
      await models.dialog.getByRole('button', { name: 'Keep it' }).click();
      await expect(models.dialog).toHaveCount(0);
      await expect(remove).toBeFocused();
      await remove.click();
      await models.dialog.getByRole('button', { name: 'Remove' }).click();
      await expect(models.added).toHaveCount(0);
    });

    await test.step('the LoRA library takes a file, refuses a wrong one, and deletes it', async () => {
      await models.addLora(loraOfOtherBase());
      await expect(models.problem('LORA_WRONG_BASE').locator('summary')).toHaveText(
        '✗ wrong_base_1.3b.safetensors: made for Wan 1.3B',
      );
      await expect(models.loras.getByText(/has the shape/)).toBeHidden();
      await models.addLora(loraPath('a_peft'));
      const lora = models.lora('a_peft.safetensors');
      await expect(lora).toContainText(/Rank \d+/);
      await lora.getByRole('button', { name: /^Delete/ }).click();
      await models.dialog.getByRole('button', { name: 'Delete' }).click();
      await expect(lora).toHaveCount(0);
    });
  },
);

test(
  'a model that is not here cannot be generated with, and the studio says where to get it',
  full,
  async ({ studio, page }) => {
    const picker = page.getByLabel('Model', { exact: true });
    await expect(picker).toHaveValue('tiny');
    await expect(page.getByText('use a computer with a graphics card')).toBeVisible();
    await picker.selectOption('wan2.2-ti2v-5b');
    await studio.fill({ image: picturePath, prompt: 'A lantern swings', steps: 1 });
    await studio.generateButton.click();
    await expect(studio.problem('MODEL_NOT_INSTALLED')).toContainText('Models page');
    await expect(studio.history).toBeHidden();
    await page.getByRole('link', { name: 'Get it on the Models page' }).click();
    await expect(page).toHaveURL(/\/models#wan2\.2-ti2v-5b$/);
    await expect(page.getByRole('region', { name: 'Wan2.2 TI2V 5B' })).toBeInViewport();
  },
);
