import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright';
import { ModelsPage } from './pages/models-page';
import { StudioPage } from './pages/studio-page';
import {
  expect,
  expectAccessible,
  full,
  loraPath,
  payload,
  picturePath,
  test,
} from './support/fixtures';
import { answerTerms } from './support/terms';

const prompt = 'A paper boat drifts to the left over a quiet pond, no people';

/** Stands in for the browser's own model, which no test browser has; it answers `answer`, word by word. */
async function giveBrowserModel(page: Page, answer: string): Promise<void> {
  await page.addInitScript((text) => {
    const session = () => ({
      promptStreaming: () =>
        new ReadableStream<string>({
          start(controller) {
            for (const word of text.split(/(?<= )/)) controller.enqueue(word);
            controller.close();
          },
        }),
      destroy() {},
    });
    const model = { availability: async () => 'available', create: async () => session() };
    Object.defineProperty(window, 'LanguageModel', { value: model });
  }, answer);
}

const rewritten =
  'A paper boat drifts slowly to the left over a quiet pond while small waves spread behind it. ' +
  'The boat rocks gently and turns a little. The camera holds still.';

/** A safetensors adapter with a trigger word in its metadata. */
async function loraWithTrigger(word: string) {
  const bytes = await readFile(loraPath('a_peft'));
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString('utf8', 8, 8 + length));
  header.__metadata__ = { ...header.__metadata__, trigger_words: word };
  const text = Buffer.from(JSON.stringify(header));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  const file = Buffer.concat([size, text, bytes.subarray(8 + length)]);
  return payload(`${word}.safetensors`, file, 'application/octet-stream');
}

test(
  'the browser’s own model: the difference is shown, edited, undone, and kept with the video',
  full,
  async ({ page }) => {
    await giveBrowserModel(page, rewritten);
    const studio = new StudioPage(page);
    await studio.open();
    await studio.fill({ image: picturePath, prompt: `sks1, sks2, sks3, ${prompt}`, steps: 1 });
    await page.getByText('More settings').click();
    const words = ['sks1', 'sks2', 'sks3'];
    await page
      .getByLabel('LoRA files')
      .setInputFiles(await Promise.all(words.map(loraWithTrigger)));
    await expect(page.getByRole('button', { name: /^Remove sks/ })).toHaveCount(3);
    await studio.improveButton.click();
    await page.getByRole('button', { name: 'Use the browser’s own model', exact: true }).click();
    await expect(studio.improved).toContainText('Improved by the browser’s own model');
    await expect(studio.improved).toContainText('cannot be made again');

    const text = await studio.prompt.inputValue();
    expect(text).toContain('sks1, sks2, sks3');
    expect(text).toContain('no people');
    expect(text).toContain('small waves');
    await expect(studio.improved.getByRole('insertion')).not.toHaveCount(0);
    await expectAccessible(page);
    await expect(studio.progress).toHaveCount(0);

    await studio.improved.getByRole('button', { name: 'Undo' }).click();
    await expect(studio.prompt).toHaveValue(`sks1, sks2, sks3, ${prompt}`);
    await expect(studio.improved).toHaveCount(0);

    await page.getByRole('button', { name: /not repeatable/ }).click();
    await expect(studio.prompt).toHaveValue(text);
    await studio.prompt.fill(`${text} Wind.`);
    await expect(studio.improved).toContainText('then edited');
    await studio.chooseCpu();
    await studio.generate();
    await studio.waitForResult();
    await studio.result.getByText('Prompt optimiser').click();
    await expect(studio.result).toContainText('then edited');
    await expect(studio.result).toContainText(`sks1, sks2, sks3, ${prompt}`);
  },
);

test(
  'a language model of the library: offered, downloaded after the terms, cancelled, used without the hub',
  full,
  async ({ page, hub }) => {
    const models = new ModelsPage(page);
    await models.open();
    await models.setHub(hub.url);
    const studio = new StudioPage(page);
    await studio.open();
    await studio.prompt.fill(prompt);
    hub.forget();
    await studio.improveButton.click();
    const offer = page.getByRole('region', { name: 'Language model' });
    await expect(offer).toContainText('Apache-2.0');
    expect(hub.requests).toEqual([]);
    await offer.getByRole('button', { name: 'Download Qwen3 0.6B (639 MB)' }).click();
    await answerTerms(page, 'Accept');
    await offer.getByRole('button', { name: 'Improve now' }).click();
    const writing = page.getByRole('region', { name: 'Improving the prompt' });
    await writing.getByRole('button', { name: 'Cancel' }).click();
    await expect(writing).toHaveCount(0);
    await expect(studio.prompt).toHaveValue(prompt);

    // The tiny model writes nonsense: whatever it says, every check holds and the prompt stays.
    await hub.close();
    await studio.improveButton.click();
    await expect(studio.improved).toContainText('Your own words stand', { timeout: 90_000 });
    await expect(studio.prompt).toHaveValue(prompt);
    await studio.improved.getByRole('button', { name: 'Close' }).click();
    await expect(studio.improved).toHaveCount(0);
  },
);
