import { expect, test } from 'playwright/test';
import { StudioPage } from './pages/studio-page';
import { full } from './support/fixtures';

/** What Chromium traces of a task of a thread, in microseconds; `tdur` is the time of the CPU. */
interface TracedTask {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

test('typing stays smooth while the CPU computes', full, async ({ page, browser }) => {
  test.setTimeout(400_000);
  const studio = new StudioPage(page);
  await studio.open();
  await browser.startTracing(page, { categories: ['toplevel'] });
  await page.getByRole('button', { name: 'Try the sample' }).click();
  await expect(studio.progress).toBeVisible();
  await studio.prompt.click();
  let runs = true;
  const ended = studio.waitForResult().finally(() => {
    runs = false;
  });
  while (runs) await page.keyboard.type('A boat sails on. ', { delay: 60 });
  await ended;
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as {
    readonly traceEvents: readonly TracedTask[];
  };
  const pages = traceEvents.filter(({ name, args }) => {
    return name === 'thread_name' && args?.name === 'CrRendererMain';
  });
  const tasks = traceEvents.filter(({ pid, tid, tdur = 0 }) => {
    return tdur > 0 && pages.some((main) => main.pid === pid && main.tid === tid);
  });
  // Of the CPU: on a busy machine a task also waits for its turn.
  const milliseconds = tasks.map(({ tdur = 0 }) => tdur / 1000);
  expect(milliseconds.length).toBeGreaterThan(1000);
  expect(Math.max(...milliseconds)).toBeLessThan(100);
});
