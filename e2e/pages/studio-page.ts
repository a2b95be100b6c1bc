import type { Download, Locator, Page } from 'playwright';
import { expect } from 'playwright/test';
import type { InputFile } from '../../lib/cli/inputs';

type Files = string | InputFile;

/** The studio at `/`, found by what a user sees and hears. */
export class StudioPage {
  readonly image: Locator;
  readonly lastImage: Locator;
  /** The frame of the video over the image. */
  readonly frame: Locator;
  readonly zoom: Locator;
  readonly prompt: Locator;
  readonly steps: Locator;
  /** What a request takes, before it runs. */
  readonly cost: Locator;
  readonly generateButton: Locator;
  readonly improveButton: Locator;
  /** What became of an improved prompt. */
  readonly improved: Locator;
  /** The run at work. */
  readonly progress: Locator;
  /** The finished video. */
  readonly result: Locator;
  readonly video: Locator;
  /** The video as screen readers find it: nothing while it is blurred. */
  readonly player: Locator;
  /** What the safety checker says of the video. */
  readonly verdict: Locator;
  /** Shown when a run has failed or was cancelled. */
  readonly failure: Locator;
  /** A run that can be resumed. */
  readonly interrupted: Locator;
  readonly history: Locator;
  /** What runs and what waits. */
  readonly queue: Locator;

  constructor(readonly page: Page) {
    const form = page.getByRole('form', { name: 'Video settings' });
    this.image = form.getByLabel('Image', { exact: true });
    this.lastImage = page.locator('#last-image');
    const field = page.locator('#image-field');
    this.frame = field.getByRole('application', { name: 'Frame of the video' });
    this.zoom = field.getByRole('slider', { name: 'Zoom' });
    this.prompt = form.getByLabel('Prompt', { exact: true });
    this.steps = form.getByLabel('Steps', { exact: true });
    this.improveButton = form.getByRole('button', { name: /^Improve( again)?$/ });
    this.improved = form.getByRole('region', { name: 'Improved prompt' });
    this.cost = form.getByText(/^Takes (about|roughly) \d+ /);
    this.generateButton = form.getByRole('button', { name: /^(Generat|Add to queue ·)/ });
    this.progress = page.getByRole('region', {
      name: /Making your video|Starting|Waiting|Cancelling|Finishing|Paus(ed$|ing)|Decoding again/,
    });
    this.result = page.getByRole('region', { name: 'Your video', exact: true });
    this.video = this.result.locator('video');
    this.player = this.result.locator(':not([inert]) > video');
    this.verdict = this.result.getByRole('region', { name: 'Safety check' });
    this.failure = page.getByRole('region', { name: /Cancelled|The video failed/ });
    this.interrupted = page.getByRole('region', { name: /^(Interrupted|Paused) (at|while) / });
    this.history = page.getByRole('region', { name: 'Past videos' });
    this.queue = page.getByRole('region', { name: 'Queue', exact: true });
  }

  /** The requests of the queue in the order in which they will run. */
  get waiting(): Locator {
    return this.queue.getByRole('list', { name: 'Waiting' }).getByRole('listitem');
  }

  /** Opens the page and waits until it takes input; a person is there, for whom the rest is loaded. */
  async open(): Promise<void> {
    await this.page.goto('/');
    await expect(this.generateButton).toBeEnabled();
    await this.page.mouse.move(1, 1);
  }

  /** Unfolds *Advanced*, unless it is. */
  async openAdvanced(): Promise<void> {
    if (await this.steps.isVisible()) return;
    await this.page.getByText('Advanced', { exact: true }).click();
  }

  /** A field of *Advanced*. */
  async field(label: string): Promise<Locator> {
    await this.openAdvanced();
    return this.page.getByLabel(label, { exact: true });
  }

  /** Fills in the least that a video needs. */
  async fill(values: { image: Files; prompt: string; steps: number }): Promise<void> {
    await this.image.setInputFiles(values.image);
    await expect(this.page.getByRole('img', { name: /^Start image/ })).toBeVisible();
    await this.prompt.fill(values.prompt);
    await this.openAdvanced();
    await this.steps.fill(String(values.steps));
  }

  /** Chooses the CPU. Where nothing is chosen it computes too: the GPU is emulated. */
  async chooseCpu(): Promise<void> {
    await this.openAdvanced();
    await this.page.getByRole('radio', { name: 'CPU' }).check();
  }

  /** Chooses WebGPU, which is emulated and takes minutes. */
  async chooseGpu(): Promise<void> {
    await this.openAdvanced();
    // Until the GPU is known, WebGPU is shown and cannot be chosen.
    await expect(this.page.getByRole('radio', { name: 'CPU' })).toBeChecked();
    await this.page.getByRole('radio', { name: 'WebGPU' }).check();
  }

  /** Presses Generate and waits until the run shows. */
  async generate(): Promise<void> {
    await this.generateButton.click();
    await expect(this.progress).toBeVisible();
  }

  /** The line that counts the steps; what is read out to screen readers ends with a full stop. */
  stepLine(steps: number): Locator {
    return this.progress.getByText(new RegExp(`^Step \\d+ of ${steps}( ·|$)`));
  }

  /**
   * Waits until the run has finished at least `step` steps. On the CPU they pass quickly, so it looks often, and by a
   * function in the page: to find a region by its role and name each time takes as long as a step.
   */
  async waitForStep(step: number, steps: number): Promise<void> {
    const reached = ([step, steps]: readonly [number, number]) => {
      const text = document.querySelector('.stages')?.textContent ?? '';
      const found = [...text.matchAll(new RegExp(`Step (\\d+) of ${steps}`, 'g'))];
      return found.some(([, count]) => Number(count) >= step);
    };
    const often = { polling: 50, timeout: 300_000 };
    await this.page.waitForFunction(reached, [step, steps] as const, often);
  }

  /** Waits for the finished video. */
  async waitForResult(): Promise<void> {
    await expect(this.result.or(this.failure)).toBeVisible({ timeout: 480_000 });
    await expect(this.result).toBeVisible();
  }

  /** Cancels the run, and waits until the stage is given back. */
  async cancel(): Promise<void> {
    await this.progress.getByRole('button', { name: 'Cancel', exact: true }).click();
    await expect(this.progress).toHaveCount(0);
  }

  /** Presses something of the menu of what can be done with the video besides the frequent things. */
  async more(name: string): Promise<void> {
    await this.result.getByRole('button', { name: 'More', exact: true }).click();
    await this.result.getByRole('button', { name, exact: true }).click();
  }

  /** Unfolds what the badge of the verdict stands for. */
  async openVerdict(): Promise<void> {
    const text = this.verdict.getByRole('paragraph');
    if (!(await text.first().isVisible())) await this.verdict.locator('summary').click();
  }

  /** Presses Download and takes what comes. */
  async download(): Promise<Download> {
    const [download] = await Promise.all([
      this.page.waitForEvent('download'),
      this.result.getByRole('button', { name: 'Download', exact: true }).click(),
    ]);
    return download;
  }

  /** The sentence and remedy of a failure that the page shows. */
  problem(code: string): Locator {
    return this.page.locator(`[data-code="${code}"]`);
  }

  /** Plays the shown video a little and tells what it is; one that is blurred is uncovered first. */
  async play(): Promise<{ width: number; height: number; seconds: number }> {
    await expect(this.video).toBeVisible();
    const show = this.result.getByRole('button', { name: 'Show the video', exact: true });
    if (await show.isVisible()) await show.click();
    return await this.video.evaluate(async (video: HTMLVideoElement) => {
      await video.play();
      const from = video.currentTime;
      // It loops, so any other time than the first one is progress.
      const deadline = performance.now() + 30_000;
      while (video.currentTime === from || video.videoWidth === 0) {
        if (performance.now() > deadline) throw new Error('the video does not move');
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      return { width: video.videoWidth, height: video.videoHeight, seconds: video.duration };
    });
  }

  /** Reloads the page and accepts the question whether to leave a running video. */
  async reload(): Promise<void> {
    this.page.once('dialog', (dialog) => void dialog.accept());
    await this.page.reload();
    await expect(this.generateButton).toBeVisible();
  }
}
