import type { Page } from 'playwright';
import { ModelsPage } from './pages/models-page';
import { StudioPage } from './pages/studio-page';
import { storeRows } from './support/database';
import { expect, expectAccessible, full, picturePath, test } from './support/fixtures';
import { answerTerms } from './support/terms';

const prompt = 'A paper boat drifts to the left over a quiet pond, no people';

const sentences = [
  'Small waves spread behind it.',
  'The boat rocks gently and turns a little.',
  'The camera holds still.',
] as const;
const improved = `${prompt}. ${sentences.join(' ')}`;

/** Puts an improved prompt into the draft of the form, as the form saves it. */
async function improveDraft(page: Page, original: string, text: string): Promise<void> {
  const optimization = {
    status: 'used',
    original,
    text,
    reasons: [],
    model: 'Qwen3 0.6B',
    sha256: 'a'.repeat(64),
    seed: 7,
    milliseconds: 12_000,
  };
  const content = { prompt: text, num_inference_steps: '1', optimization };
  await storeRows(page, 'drafts', [{ id: 'values', content }]);
}

test(
  'an improved prompt: each sentence is shown and removed, all are undone, edited, and kept with the video',
  full,
  async ({ page }) => {
    const studio = new StudioPage(page);
    await studio.open();
    await improveDraft(page, prompt, improved);
    await studio.open();
    await expect(studio.prompt).toHaveValue(improved);
    await expect(studio.improved).toContainText('Improved by Qwen3 0.6B in 12 s, seed 7.');
    const added = studio.improved.getByRole('list', { name: 'Added sentences' });
    const removing = (sentence: string) =>
      added.getByRole('button', { name: `Remove: ${sentence}` });
    await expect(added.getByRole('listitem')).toHaveText([...sentences]);
    await expectAccessible(page);

    await test.step('by the keyboard, one after another; the focus goes to the next', async () => {
      await removing(sentences[1]).focus();
      await page.keyboard.press('Enter');
      await expect(studio.prompt).toHaveValue(`${prompt}. ${sentences[0]} ${sentences[2]}`);
      await expect(studio.improved).toContainText('then edited');
      await expect(removing(sentences[2])).toBeFocused();
      await page.keyboard.press('Space');
      await expect(studio.prompt).toHaveValue(`${prompt}. ${sentences[0]}`);
      await expect(removing(sentences[0])).toBeFocused();
      await page.keyboard.press('Enter');
      await expect(studio.prompt).toHaveValue(prompt);
      await expect(studio.prompt).toBeFocused();
      await expect(studio.improved).toHaveCount(0);
    });

    await improveDraft(page, prompt, improved);
    await studio.open();
    await studio.improved.getByRole('button', { name: 'Undo' }).click();
    await expect(studio.prompt).toHaveValue(prompt);
    await expect(studio.improved).toHaveCount(0);

    await improveDraft(page, prompt, improved);
    await studio.open();
    await expect(studio.prompt).toHaveValue(improved);
    await studio.prompt.fill(`${improved} Wind.`);
    await expect(studio.improved).toContainText('then edited');
    await studio.fill({ image: picturePath, prompt: `${improved} Wind.`, steps: 1 });
    await studio.chooseCpu();
    await studio.generate();
    await studio.waitForResult();
    await studio.result.getByText('Prompt optimiser').click();
    await expect(studio.result).toContainText('then edited');
    await expect(studio.result).toContainText(prompt);
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

    // The tiny model writes nonsense, of which no sentence is added.
    await hub.close();
    await studio.improveButton.click();
    await expect(studio.improved).toContainText('no sentence of the model could be added', {
      timeout: 180_000,
    });
    await expect(studio.prompt).toHaveValue(prompt);
    await studio.improved.getByRole('button', { name: 'Close' }).click();
    await expect(studio.improved).toHaveCount(0);
  },
);
