import { inspectVideo } from '../lib/video/inspect';
import { ServePage } from './pages/serve-page';
import { StudioPage } from './pages/studio-page';
import {
  expectAccessible,
  full,
  loraOfOtherBase,
  loraPath,
  oddLora,
  picture,
  picturePath,
} from './support/fixtures';
import { expect, test } from './support/serve-fixtures';

/**
 * The page Serve in a real Chromium, with jobs that come through the API of the running server. A job
 * of 40 steps with guidance is there long enough to be looked at; where only its beginning matters, it
 * is one of ten seconds, and cancelled.
 */
const long = { num_inference_steps: 40, guidance_scale: 5 };
const longest = { ...long, duration: 10 };
test.use({ longVideos: true });

test('a tab that a person connects makes the video of an API call, and lists it', async ({
  serve,
  caller,
  workerToken,
}) => {
  await expect(serve.connection).toHaveAccessibleName('Not connected');
  await serve.connect(workerToken, { name: 'Study' });
  await serve.waitFor('idle');
  await expect(serve.connection.getByRole('heading')).toBeFocused();
  await expect(serve.connection).toHaveAccessibleName('Ready for jobs');
  for (const fact of [/Model\s*tiny/, /Sizes\s*1280×720, 720×1280/, /Jobs of\s*\S/]) {
    await expect(serve.takes).toContainText(fact);
  }

  await expect(serve.abilities).toContainText(
    'the quick check that comes with Kinora judges its videos',
  );

  const end = `data:image/png;base64,${picture().toString('base64')}`;
  const id = await caller.submit({ ...long, last_image: end });
  const streamed = caller.events(id, (seen) => seen.has('step') && seen.has('preview'));
  await expect(serve.connection.getByText(/^Step \d+ of 40$/)).toBeVisible({ timeout: 90_000 });
  await expect(serve.connection).toHaveAccessibleName('Making a video');
  await expect(serve.fact('Job')).toHaveText(id.slice(0, 8));
  await expect(serve.fact('Attempt')).toHaveText('1');
  await expect(serve.fact('Video')).toHaveText('1280×720, 5 s');
  await expect(serve.preview).toBeVisible({ timeout: 90_000 });
  expect(await streamed).toMatch(/"image":"data:image\/webp;base64,/);

  await expect(serve.line(id)).toContainText('Done', { timeout: 180_000 });
  await expect(serve.line(id)).toContainText('Check: clear');
  await expect(serve.served).toHaveAccessibleName('1 job done since this page was opened');
  await serve.waitFor('idle');
  const { status, outputs, timings } = await caller.result(id);
  expect(status).toBe('completed');
  expect(timings.inference).toBeGreaterThan(0);
  const video = await fetch(String(outputs[0]));
  const file = await video.blob();
  const facts = await inspectVideo(file);
  expect(facts).toMatchObject({ width: 1280, height: 720, frames: 121, frameRate: 24 });
  // Its settings are in the answer, not in the file.
  expect(await file.text()).not.toContain('negative_prompt');

  await serve.press('Disconnect');
  await serve.waitFor('disconnected');
  await expect(serve.connectButton).toBeEnabled();
});

test(
  'axe finds nothing: not connected, idle, at work; a cancel through the API ends the work within two seconds',
  full,
  async ({ serve, caller, workerToken, page }) => {
    await test.step('not connected', () => expectAccessible(page));
    await serve.connect(workerToken);
    await serve.waitFor('idle');
    await test.step('idle', () => expectAccessible(page));
    await caller.submit(longest);
    await serve.waitFor('working');
    await expect(serve.preview).toBeVisible({ timeout: 90_000 });
    await test.step('at work', () => expectAccessible(page));
    await caller.cancelAll();
    await serve.waitFor('idle');

    let tookMs = Number.POSITIVE_INFINITY;
    // A machine may stand still for two seconds, but hardly twice.
    for (let tries = 0; tries < 2 && tookMs > 2000; tries += 1) {
      const id = await caller.submit(longest);
      await serve.waitFor('working');
      await expect(serve.fact('Job')).toHaveText(id.slice(0, 8));
      await expect(serve.connection.getByText(/^Step \d+ of 40$/)).toBeVisible({ timeout: 90_000 });
      const cancelledAt = performance.now();
      await caller.cancel(id);
      await serve.page.waitForFunction(
        () => document.querySelector<HTMLElement>('[data-status]')?.dataset.status !== 'working',
      );
      tookMs = performance.now() - cancelledAt;
      await expect(serve.line(id)).toContainText('Cancelled or taken over');
      expect(await caller.result(id)).toMatchObject({
        status: 'failed',
        error: 'cancelled by user',
      });
    }
    expect(tookMs).toBeLessThan(2000);
  },
);

test(
  'the studio and the served jobs of one browser wait for each other',
  full,
  async ({ serve, caller, workerToken, context }) => {
    await serve.connect(workerToken);
    await serve.waitFor('idle');
    const studio = new StudioPage(await context.newPage());
    await studio.open();
    await studio.fill({ image: picturePath, prompt: 'A kite climbs', steps: 40 });
    await (await studio.field('Duration')).fill('10');
    await studio.chooseCpu();

    const first = await caller.submit(longest);
    await serve.waitFor('working');
    await studio.generate();
    await expect(studio.progress).toHaveAccessibleName('Waiting for the GPU');
    await serve.waitFor('working');
    await caller.cancel(first);
    await studio.waitForStep(1, 40);

    await serve.waitFor('waiting');
    await expect(serve.connection).toContainText('is using the GPU');
    const second = await caller.submit(longest);
    expect((await caller.result(second, 1)).status).toBe('created');
    await serve.waitFor('waiting');
    await studio.progress.getByRole('button', { name: 'Cancel' }).click();
    await serve.waitFor('working');
    await expect(serve.fact('Job')).toHaveText(second.slice(0, 8));
  },
);

test(
  'a second tab of the browser says which one serves',
  full,
  async ({ serve, workerToken, context }) => {
    await serve.connect(workerToken, { name: 'The first' });
    await serve.waitFor('idle');
    const second = new ServePage(await context.newPage());
    await second.open();
    await second.connect(workerToken);
    await expect(second.connection.locator('[data-code="BUSY"]')).toContainText(
      /Another tab of this browser already serves, as “The first” since \d/,
    );
    await serve.press('Disconnect');
    await serve.waitFor('disconnected');
    await second.connectButton.click();
    await second.waitFor('idle');
  },
);

test.describe('with requests that fail on purpose', () => {
  test.use({ cuts: true, longVideos: false });

  test(
    'a wrong token is a sentence; a server that cannot be reached is tried again, and at once when asked',
    full,
    async ({ serve, workerToken, caller, context }) => {
      await serve.connect('not a token');
      await expect(serve.token).toHaveAccessibleDescription(/This is not a worker token\. \S/);
      await serve.connect(caller.key);
      await serve.waitFor('refused');
      await expect(serve.connection).toContainText(
        /This is an API key: workers connect with a worker token\. Use a worker token of this server/,
      );
      await serve.connect(workerToken);
      await serve.waitFor('idle');
      await serve.press('Disconnect');
      await serve.waitFor('disconnected');

      const me = '**/api/worker/me';
      await context.route(me, (route) => route.abort('connectionrefused'));
      await serve.connect(workerToken);
      await serve.waitFor('reconnecting');
      await expect(serve.connection).toHaveAccessibleName('Connection lost');
      await expect(serve.connection).toContainText('The server cannot be reached.');
      // The wait doubles with each attempt; here it is long enough for the button to end it: after a
      // shorter one the page may connect by itself before the button is pressed.
      await expect(serve.connection).toContainText(/Next attempt in ([5-9]|[1-9]\d) s/);
      await context.unroute(me);
      await serve.press('Try now');
      await serve.waitFor('idle', 10_000);
    },
  );

  test(
    'a page reloaded during an upload sends the video again, also after another cut',
    full,
    async ({ serve, caller, workerToken, context }) => {
      const events: string[] = [];
      await context.exposeFunction('kinoraServing', ({ type }: { type: string }) =>
        events.push(type),
      );
      await serve.connect(workerToken, { remember: true });
      await serve.waitFor('idle');
      const output = '**/api/worker/jobs/*/output?*';
      const sent: string[] = [];
      let look = () => {};
      const looked = new Promise<void>((resolve) => {
        look = resolve;
      });
      await context.route(output, async (route) => {
        if (route.request().method() !== 'PUT') return route.continue();
        sent.push(new URL(route.request().url()).searchParams.get('lease_token') ?? '');
        // The first one hangs until the page goes; the second one is cut; then the way is free.
        if (sent.length === 1) return;
        if (sent.length > 2) return route.continue();
        await looked;
        return route.abort('connectionfailed');
      });
      const id = await caller.submit();
      await serve.waitFor('uploading', 120_000);
      await expect.poll(() => sent).toHaveLength(1);
      events.length = 0;
      await serve.page.reload();
      await serve.waitFor('uploading');
      await expect(serve.fact('Attempt')).toHaveText('1');
      look();
      await expect(serve.line(id)).toContainText('Done', { timeout: 60_000 });
      expect(sent).toEqual([sent[0], sent[0], sent[0]]);
      expect(events).not.toContain('claimed');
      expect(await caller.result(id)).toMatchObject({ status: 'completed', error: '' });
    },
  );
});

test(
  'a page reloaded during a job gives the job back, and takes it again',
  full,
  async ({ serve, caller, workerToken }) => {
    await serve.connect(workerToken, { remember: true });
    await serve.waitFor('idle');
    const id = await caller.submit(longest);
    await serve.waitFor('working');
    await expect(serve.fact('Job')).toHaveText(id.slice(0, 8));
    await serve.page.reload();
    await serve.waitFor('working');
    // A lease that ran out would have made it the second attempt.
    await expect(serve.fact('Job')).toHaveText(id.slice(0, 8));
    await expect(serve.fact('Attempt')).toHaveText('1');
  },
);

test.describe('with short videos', () => {
  test.use({ longVideos: false });

  test(
    'LoRAs that cannot be read fail by themselves: the worker takes the next job each time',
    full,
    async ({ serve, caller, workerToken }) => {
      await serve.connect(workerToken);
      await serve.waitFor('idle');
      const ids: string[] = [];
      for (const name of ['factors-i8', 'empty', 'scale-nan', 'alpha-i64']) {
        const path = await caller.upload(oddLora(name));
        ids.push(await caller.submit({ loras: [{ path, scale: 1 }] }));
      }
      const plain = await caller.submit();
      const [int8, empty, nan, alpha] = await Promise.all(ids.map((id) => caller.ended(id)));
      expect(int8).toMatchObject({ status: 'failed', error: expect.stringContaining('type I8') });
      expect(empty).toMatchObject({ status: 'failed', error: expect.stringContaining('is empty') });
      expect(nan).toMatchObject({
        status: 'failed',
        error: expect.stringContaining('not a finite'),
      });
      expect(alpha).toMatchObject({ status: 'completed', error: '' });
      expect(await caller.ended(plain)).toMatchObject({ status: 'completed', error: '' });
      // A job that is given out again would be here three times.
      await expect(serve.served).toHaveAccessibleName(/^2 jobs done/);
      await serve.waitFor('idle');
    },
  );

  test(
    'a job uses an uploaded LoRA; one for another base fails with its name',
    full,
    async ({ serve, caller, workerToken }) => {
      const path = await caller.upload(loraPath('a_comfy'));
      const wrong = await caller.upload(loraOfOtherBase());
      await serve.connect(workerToken);
      await serve.waitFor('idle');
      const id = await caller.submit({ loras: [{ path, scale: 0.8 }] });
      await serve.waitFor('working');
      await expect(serve.fact('LoRAs')).toHaveText('1');
      const misfit = await caller.submit({ loras: [{ path: wrong, scale: 1 }] });
      expect(await caller.ended(id)).toMatchObject({ status: 'completed', error: '' });
      const failed = await caller.ended(misfit);
      expect(failed).toMatchObject({ status: 'failed', outputs: [] });
      expect(failed.error).toContain(wrong);
      await expect(serve.line(misfit)).toContainText('Failed');
      await expect(serve.line(misfit)).toContainText(wrong);
      await expect(serve.served).toHaveAccessibleName(/^1 job done/);
      await serve.waitFor('idle');
    },
  );
});
