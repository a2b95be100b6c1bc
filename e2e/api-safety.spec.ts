import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { defaultSafetyChecker, safetyThreshold } from '../lib/contract';
import { publishTwins } from '../lib/weights/testing/hub/twins';
import { ModelsPage } from './pages/models-page';
import { ServePage } from './pages/serve-page';
import { full } from './support/fixtures';
import { expect, test } from './support/serve-fixtures';
import { acceptTerms } from './support/terms';

/** The weights of the checker's tiny twin: its verdicts mean nothing, but they are computed. */
const twin = new URL('../lib/safety/goldens/timm/model.safetensors', import.meta.url);

test(
  'a tab with the checker checks the videos of the API that ask for it, and says which checker it was',
  full,
  async ({ page, caller, workerToken, hub }) => {
    await publishTwins(hub);
    const models = new ModelsPage(page);
    await models.open();
    await acceptTerms(page);
    await models.setHub(hub.url);
    const tiny = models.model('Tiny (random weights)');
    await tiny.getByRole('button', { name: /^Download the safety checker/ }).click();
    await expect(tiny).toContainText(/Safety checker\s*Installed/);

    const serve = new ServePage(page);
    await serve.open();
    await serve.connect(workerToken);
    await serve.waitFor('idle');
    const [checked, unasked] = await Promise.all([
      caller.submit(),
      caller.submit({ enable_safety_checker: false }),
    ]);
    const { status, safety, has_nsfw_contents } = await caller.ended(checked);
    expect(status).toBe('completed');
    expect(safety).toMatchObject({
      model: defaultSafetyChecker.files[0]?.repository,
      sha256: createHash('sha256')
        .update(await readFile(twin))
        .digest('hex'),
    });
    const flagged = Number(safety?.score) >= safetyThreshold;
    expect(safety?.status).toBe(flagged ? 'flagged' : 'clear');
    expect(has_nsfw_contents).toEqual([flagged]);
    expect(await caller.ended(unasked)).toMatchObject({
      status: 'completed',
      has_nsfw_contents: [false],
      safety: { status: 'off', score: null, model: null },
    });
  },
);
