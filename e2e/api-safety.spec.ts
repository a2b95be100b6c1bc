import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { defaultSafetyChecker } from '../lib/contract';
import { addToBias } from '../lib/safety/testing/bias';
import { publishTwins } from '../lib/weights/testing/hub/twins';
import { ModelsPage } from './pages/models-page';
import { ServePage } from './pages/serve-page';
import { full } from './support/fixtures';
import { expect, test } from './support/serve-fixtures';
import { acceptTerms } from './support/terms';

const twin = new URL('../lib/safety/goldens/timm/model.safetensors', import.meta.url);
const [{ repository: checker } = { repository: '' }] = defaultSafetyChecker.files;

test(
  'a tab with the checker checks the videos of the API',
  full,
  async ({ page, caller, workerToken, hub }) => {
    await publishTwins(hub);
    const weights = new Uint8Array(await readFile(twin));
    // The checker's tiny twin, with a bias that makes it flag every video.
    addToBias(weights, 100);
    hub.repositories.put(checker, 'model.safetensors', weights);
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
    const sha256 = createHash('sha256').update(weights).digest('hex');
    expect(await caller.ended(await caller.submit())).toMatchObject({
      status: 'completed',
      has_nsfw_contents: [true],
      safety: { status: 'flagged', score: expect.any(Number), model: checker, sha256 },
    });
  },
);
