import { openAsBlob } from 'node:fs';
import { chromium, type Page } from 'playwright';
import { testLaunchOptions } from '../lib/cli/browser/launch';
import {
  type GoldenWeights,
  goldenBytes,
  goldenPath,
  goldenRepository,
  holdVae,
} from '../lib/models/wan/testing/golden-model';
import { inspectVideo } from '../lib/video/inspect';
import type { LocalHub } from '../lib/weights/testing/hub/server';
import { ModelsPage } from './pages/models-page';
import { StudioPage } from './pages/studio-page';
import { deeperModel } from './support/deeper-model';
import {
  expect,
  expectAccessible,
  fixtureVideo,
  full,
  picturePath,
  test,
} from './support/fixtures';
import { acceptTerms, answerTerms, forgetTerms } from './support/terms';

const prompt = 'A lantern swings in the wind';
const weights: readonly GoldenWeights[] = ['transformer', 'text_encoder', 'vae', 'tiny_decoder'];

/** Waits until the VAE is in the middle of its download. */
async function untilVae(hub: LocalHub): Promise<void> {
  await expect
    .poll(() => hub.served(goldenPath('vae')).bytes, { timeout: 60_000, intervals: [50] })
    .toBeGreaterThan(600_000);
}

/** Sets the hub, adds the golden model and starts its download. */
async function startDownload(models: ModelsPage, hub: LocalHub): Promise<void> {
  await models.setHub(hub.url);
  await models.addFromHub(goldenRepository);
  await models.confirmDownload();
}

async function makeVideo(page: Page): Promise<StudioPage> {
  const studio = new StudioPage(page);
  await studio.fill({ image: picturePath, prompt, steps: 1 });
  await studio.chooseCpu();
  await studio.generate();
  await studio.waitForResult();
  return studio;
}

test(
  'from nothing to a video: a hub, two cuts and a reload',
  full,
  async ({ models, page, hub }) => {
    const golden = models.model('Golden');
    const cut = { kind: 'cut', afterBytes: 60_000 } as const;
    let lost = 0;
    let threads = 0;

    await test.step('the model is found, and its sheet says what it takes', async () => {
      await models.setHub(hub.url);
      await models.addFromHub(goldenRepository);
      const { dialog } = models;
      await expect(dialog.locator('.plan-sum')).toHaveText(
        /: [\d.]+ MB to fetch, roughly \d+ s at 100 Mbit\/s; it is kept in this browser\.$/,
      );
      await expect(dialog.getByRole('row')).toHaveCount(0);
      await models.openOptions();
      await expect(dialog.getByRole('row', { name: /^Together/ })).toBeVisible();
      await dialog.getByText('Licences', { exact: true }).click();
      await expect(dialog).toContainText(`From ${new URL(hub.url).host}: `);
      await expect(dialog.getByRole('link', { name: 'Apache-2.0' })).toBeVisible();
      await expect(dialog).toContainText(/ are free now; .* will be left\./);
      await expect(dialog.getByRole('row', { name: /^VAE .*2\.1 MB$/ })).toBeVisible();
      await expect(dialog.getByRole('row', { name: /^Together/ })).toBeVisible();
      for (const part of weights) expect(hub.served(goldenPath(part)).bytes).toBeLessThan(120_000);
    });

    await test.step('the connection is cut twice, and the page reloaded in the middle', async () => {
      for (const part of ['transformer', 'vae'] as const) {
        hub.fail({ fault: cut, path: goldenPath(part), host: 'storage', fromByte: 20_000 });
      }
      holdVae(hub);
      await models.confirmDownload();
      await models.waitForStatus(golden, /^Downloading/);
      for (const name of ['Transformer', 'Text encoder']) {
        await expect(models.part(golden, name)).toContainText('✓');
      }
      await untilVae(hub);
      await page.reload();
      hub.heal();
    });

    await test.step('it says so, and Resume finishes it', async () => {
      const banner = page.getByRole('complementary', { name: 'Interrupted download' });
      await expect(banner).toContainText(
        /Golden was interrupted (at \d+ ?%|after \d[\d.]* [kM]B)\./,
      );
      await models.waitForStatus(golden, /^Interrupted/);
      // By now the hub has noticed that what it was sending has no reader.
      lost = hub.served(goldenPath('vae')).bytes;
      // The thread that asks the GPU stays.
      await expect(models.device.getByRole('status')).toContainText('works here');
      threads = page.workers().length;
      await banner.getByRole('button', { name: 'Resume' }).click();
      await models.waitForStatus(golden, 'Ready');
      await expect(banner).toHaveCount(0);
      await expect(golden).toContainText('Verified');
      await golden.getByText('Parts and their sources').click();
      for (const name of ['Transformer', 'Text encoder', 'VAE', 'Tiny decoder']) {
        await expect(models.part(golden, name)).toContainText('✓');
      }
    });

    await test.step('nothing was fetched twice, and only in ranges', async () => {
      const stored = hub.requests.filter(
        ({ host, bytesSent }) => host === 'storage' && bytesSent > 0,
      );
      expect(stored.every(({ range, status }) => range !== null && status === 206)).toBe(true);
      // The thread of the SHA-256 ends with the download.
      await expect.poll(() => page.workers().length).toBe(threads);
      const [transformer, textEncoder, vae = 0, tinyDecoder] = weights.map(
        (part) => hub.served(goldenPath(part)).bytesTwice,
      );
      expect([textEncoder, tinyDecoder]).toEqual([0, 0]);
      // Of what had come, the browser drops what the page has not read when the cut comes.
      expect(transformer).toBeLessThanOrEqual(cut.afterBytes);
      // The reload lost the unit that was on its way, and nothing else.
      expect(vae).toBeLessThanOrEqual(lost);
    });

    await test.step('every byte is as it was written, and it makes a video', async () => {
      await golden.getByRole('button', { name: 'Check every byte' }).click();
      await expect(golden).toContainText('Every byte was compared with its checksum.');
      await golden.getByRole('link', { name: 'Make a video' }).click();
      await expect(page.getByLabel('Model', { exact: true })).toHaveValue('golden');
      const studio = await makeVideo(page);
      await expect(studio.result).toContainText('golden on the CPU');
      const file = test.info().outputPath('video.mp4');
      await (await studio.download()).saveAs(file);
      expect(await inspectVideo(await openAsBlob(file))).toMatchObject(fixtureVideo);
    });
  },
);

test(
  'a second tab shows the download and steers nothing; a part is paused, cancelled and fetched again',
  full,
  async ({ models, page, hub, context }) => {
    const golden = models.model('Golden');
    const vae = models.part(golden, 'VAE');
    holdVae(hub);
    await startDownload(models, hub);
    await untilVae(hub);

    const second = new ModelsPage(await context.newPage());
    const same = second.model('Golden');
    await test.step('a second tab shows it, and steers nothing', async () => {
      await second.open();
      await second.waitForStatus(same, /^In another tab: \d+ %$/);
      await expect(same).toContainText('Another tab of this browser works on this model');
      await expect(same.getByRole('progressbar')).toHaveAttribute('value', /^0\./);
      const buttons = same.getByRole('button');
      await expect(buttons).toHaveText(['Pause', 'Cancel']);
      for (const button of await buttons.all()) await expect(button).toBeDisabled();
    });

    await test.step('the others go on while one is paused', async () => {
      await vae.getByRole('button', { name: 'Pause VAE' }).click();
      await expect(vae).toContainText('Paused');
      await expect(models.part(golden, 'Tiny decoder')).toContainText('✓');
      await models.waitForStatus(golden, /^Paused at/);
      await second.waitForStatus(same, /^Interrupted/);
    });

    await test.step('cancelled, it is gone, and the other tab can fetch the rest', async () => {
      await vae.getByRole('button', { name: 'Cancel VAE' }).click();
      await models.waitForStatus(golden, 'Not complete');
      hub.heal();
      await same.getByRole('button', { name: 'Download the rest' }).click();
      // The speed of the first part is known by now.
      await expect(second.dialog).toContainText('on this line');
      await second.openOptions();
      await expect(second.dialog.getByRole('row', { name: /^Transformer/ })).toContainText('here');
      await expect(second.dialog.getByRole('row', { name: /^VAE/ })).toContainText('MB');
      await second.confirmDownload();
      await models.waitForStatus(golden, 'Ready');
      await second.waitForStatus(same, 'Ready');
      await expect(golden).not.toContainText('Another tab');
    });

    await test.step('the settings list it with its size, and delete it', async () => {
      await page.getByRole('link', { name: 'Settings' }).click();
      await page.getByRole('button', { name: 'Delete Golden' }).click();
      const dialog = page.getByRole('dialog', { name: 'Delete Golden?' });
      await expect(dialog).toContainText(/This frees \d/);
      await expectAccessible(page);
      await dialog.getByRole('button', { name: 'Delete' }).click();
      await expect(page.getByRole('button', { name: 'Delete Golden' })).toHaveCount(0);
    });
  },
);

test(
  'an unreachable hub is a sentence in the sheet, and can be tried again',
  full,
  async ({ models, hub }) => {
    const { dialog } = models;
    await models.setHub(hub.url);
    await models.addFromHub(goldenRepository);
    await dialog.getByRole('button', { name: 'Not now' }).click();
    let look = () => {};
    const looked = new Promise<void>((resolve) => {
      look = resolve;
    });
    hub.fail({ fault: { kind: 'reset', when: looked }, times: 10_000 });
    await models.model('Golden').getByRole('button', { name: 'Download' }).click();
    await expect(dialog).toContainText('Asking for the size of every part');
    look();
    await expect(models.problem('HUB_UNREACHABLE')).toBeInViewport();
    await expect(dialog.getByRole('button', { name: 'Download' })).toBeDisabled();
    await dialog.getByRole('button', { name: 'Change the hub address' }).click();
    await expect(dialog).toBeHidden();
    await expect(models.page.getByLabel('Base address of the hub')).toBeFocused();
    await models.model('Golden').getByRole('button', { name: 'Download' }).click();
    await dialog.getByRole('button', { name: 'Use local files' }).click();
    await expect(models.model('Golden').getByText('Use local files instead')).toBeFocused();
    await models.model('Golden').getByRole('button', { name: 'Download' }).click();
    await expect(models.problem('HUB_UNREACHABLE')).toBeInViewport();
    hub.heal();
    await dialog.getByRole('button', { name: 'Try again' }).click();
    await expect(dialog).toContainText('to fetch');
    await expect(dialog.getByRole('button', { name: 'Download' })).toBeEnabled();
  },
);

test(
  'too little space is reported with numbers, before a download and in the middle of one',
  full,
  async ({ hub, baseURL: origin = '' }) => {
    // Chromium reports a fixed quota to pages unless that is switched off.
    const options = await testLaunchOptions();
    const args = [...(options.args ?? []), '--disable-features=StaticStorageQuota'];
    const browser = await chromium.launch({ ...options, args });
    const page = await browser.newPage({ baseURL: origin });
    const models = new ModelsPage(page);
    const golden = models.model('Golden');
    const devtools = await page.context().newCDPSession(page);
    /** Sets how much the origin may store; everything, without a number. */
    const allow = (quotaSize?: number) =>
      devtools.send('Storage.overrideQuotaForOrigin', {
        origin,
        ...(quotaSize !== undefined && { quotaSize }),
      });

    await test.step('before', async () => {
      await allow(1_000_000);
      await models.open();
      await acceptTerms(page);
      await models.setHub(hub.url);
      await models.addFromHub(goldenRepository);
      await expect(models.dialog).toContainText(
        /There is not enough space: [\d.]+ MB are needed, [\d.]+ [kM]B are free\./,
      );
      await expect(models.dialog.getByRole('button', { name: 'Download' })).toBeDisabled();
      await page.keyboard.press('Escape');
      await allow();
      await golden.getByRole('button', { name: 'Download' }).click();
      await expect(models.dialog).toContainText(/will be left/);
    });

    await test.step('in the middle', async () => {
      holdVae(hub);
      await models.confirmDownload();
      await untilVae(hub);
      await allow(100_000);
      hub.heal();
      await models.waitForStatus(golden, /^Paused/);
      await expect(golden).toContainText("the browser's storage is full");
      await allow();
      await golden.getByRole('button', { name: 'Resume', exact: true }).click();
      await models.waitForStatus(golden, 'Ready');
    });
    await browser.close();
  },
);

test(
  'a LoRA of the hub by its name, and blocks read from disk where memory is short',
  full,
  async ({ models, page, hub }) => {
    const bytes = await goldenBytes('loras/a_kohya_alpha.safetensors');
    hub.repositories.put('kinora/lora', 'lantern.safetensors', bytes);
    const listed = 'wan22_5b_i2v_crush_it_lora';
    const other = await goldenBytes('loras/a_peft.safetensors');
    hub.repositories.put(`ostris/${listed}`, `${listed}.safetensors`, other);

    await test.step('both come into the library', async () => {
      await models.addFolder(await deeperModel(test.info().outputPath('deeper')));
      await models.setHub(hub.url);
      await models.loras.getByLabel('Address on the hub, or a link').fill('kinora/lora');
      await models.loras.getByRole('button', { name: 'Add', exact: true }).click();
      await expect(models.loras.getByText('✓ lantern.safetensors')).toBeVisible();
      await expect(models.lora('lantern.safetensors')).toContainText(
        /Rank \d+ · for .* · [\d.]+ kB/,
      );
      await models.waitForStatus(models.model('Deeper'), 'Ready');
    });

    await test.step('one of those to begin with is added by a click, and opens in the studio', async () => {
      const entry = models.loras.getByRole('listitem').filter({ hasText: `ostris/${listed}` });
      await expect(entry).toContainText('For Wan2.2 TI2V 5B. Trigger word: “crush it”. 161 MB.');
      await entry.getByRole('button', { name: 'Add Crush it' }).click();
      await entry.getByRole('link', { name: `Use ${listed}.safetensors in the studio` }).click();
      const scale = page.getByLabel(`${listed}.safetensors, scale`);
      await expect(scale).toBeInViewport();
      await page.getByRole('button', { name: `Remove ${listed}.safetensors` }).click();
    });

    await test.step('the plan says what is read in every step', async () => {
      const studio = new StudioPage(page);
      await studio.fill({ image: picturePath, prompt, steps: 2 });
      await expect(page.getByLabel('Model', { exact: true })).toHaveValue('deeper');
      await page.getByRole('button', { name: 'Use lantern.safetensors of the library' }).click();
      await studio.chooseCpu();
      await page.getByLabel('GPU memory').fill('0.0043');
      await studio.generate();
      await expect(studio.progress).toContainText(
        /\d+ of 64 blocks stays? in memory; the others are read from disk in every step\./,
      );
      await studio.cancel();
    });
  },
);

test(
  'gated files need terms and a token, which the hub alone gets; checker and language model come',
  full,
  async ({ models, page, hub }) => {
    await models.setHub(hub.url);
    hub.repositories.gates.set(goldenRepository, 'hf_secret');
    await models.address.fill(goldenRepository);
    await models.lookUp.click();
    const denied = models.problem('HUB_DENIED');
    await expect(denied).toContainText('The makers ask you to accept their terms at');
    const repository = denied.getByRole('link', { name: 'Open the page of the repository' });
    await expect(repository).toHaveAttribute('href', `${hub.url}/${goldenRepository}`);
    await page.getByLabel('Access token of your account').fill('hf_secret');
    await page.getByRole('button', { name: 'Keep it', exact: true }).click();
    await expect(page.getByRole('button', { name: 'Remove the token' })).toBeVisible();
    await test.step('the sheet has the terms of use, and Download accepts them', async () => {
      await forgetTerms(page);
      await models.addFromHub(goldenRepository);
      const { dialog } = models;
      await expect(dialog).toContainText('With Download you accept the terms of use');
      await dialog.getByText('Terms of use and licences').click();
      await expect(dialog.getByText('What must not be made')).toBeVisible();
      await expectAccessible(page);
      await models.confirmDownload();
    });
    const golden = models.model('Golden');
    await models.waitForStatus(golden, 'Ready');
    await expect(golden).toContainText('Safety checkerInstalled');
    expect(new Set(hub.authorizations.map(({ host }) => host))).toEqual(new Set(['hub']));

    await forgetTerms(page);
    const language = models.model('Qwen3 0.6B');
    await expect(language).toContainText('639 MB');
    await expect(language.getByRole('link', { name: 'Apache-2.0' })).toBeVisible();
    await language.getByRole('button', { name: /^Download/ }).click();
    await answerTerms(page, 'Accept');
    await models.waitForStatus(language, 'Ready');
    await language.getByRole('button', { name: 'Check every byte' }).click();
    await expect(language).toContainText('Every byte was compared');
  },
);
