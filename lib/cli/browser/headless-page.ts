import { rename, rm } from 'node:fs/promises';
import type { Browser, BrowserContext, Page } from 'playwright';
import {
  type Backend,
  type ErrorRecord,
  type GenerationResult,
  type HeadlessApi,
  type HeadlessEvent,
  type HeadlessRun,
  isErrorCode,
  type KernelCheck,
  KinoraError,
  type RunCounters,
} from '../../contract';
import type { InputFile } from '../inputs';

/** One generation, as a program asks the page for it. */
export interface HeadlessRequest extends Omit<HeadlessRun, 'loraScales' | 'parameters'> {
  readonly image: InputFile;
  /** The file of `options.lastImage`. */
  readonly lastImage?: InputFile | undefined;
  readonly parameters: Omit<HeadlessRun['parameters'], 'loras'>;
  /** Adapter files, each with its scale; up to three with those of the library. */
  readonly loras: readonly { readonly path: string; readonly scale: number }[];
}

/** The page `/headless`, driven from Node: the studio's runner and engine without its widgets. */
export class HeadlessPage {
  private constructor(readonly page: Page) {}

  /**
   * Opens the page and waits until it can be used.
   *
   * @param browser a page of a browser has a profile of its own; one of a context has the context's
   * @param onProgress sees every event; previews come without their pixels
   */
  static async open(
    browser: Pick<Browser | BrowserContext, 'newPage'>,
    origin: string,
    onProgress: (event: HeadlessEvent) => void = () => undefined,
  ): Promise<HeadlessPage> {
    const page = await browser.newPage();
    await page.exposeFunction('kinoraProgress', onProgress);
    await page.goto(new URL('/headless', origin).href);
    await page.locator('main[data-ready="true"]').waitFor({ state: 'attached' });
    return new HeadlessPage(page);
  }

  /**
   * Runs one generation to its end.
   *
   * @throws KinoraError the page's own, with its code and remedy
   */
  async generate(input: HeadlessRequest): Promise<GenerationResult> {
    const { image, lastImage, loras, ...request } = input;
    await this.page.locator('#image').setInputFiles(image);
    await this.page.locator('#last-image').setInputFiles(lastImage ?? []);
    await this.page.locator('#loras').setInputFiles(loras.map((lora) => lora.path));
    // The page fills in `parameters.loras` by the files' names: no path of this machine gets out.
    const loraScales = loras.map(({ scale }) => scale);
    return await this.call('generate', { ...request, loraScales });
  }

  /** Ends the running generation; its promise rejects with `CANCELLED`. */
  async cancel(): Promise<void> {
    await this.page.evaluate(() => window.kinora?.cancel());
  }

  /** Byte counters of the engine's device. */
  counters(): Promise<RunCounters> {
    return this.call('counters');
  }

  /** The numerical self-test of the device. */
  selfTest(backend: Backend): Promise<readonly KernelCheck[]> {
    return this.call('selfTest', backend);
  }

  /**
   * Writes a finished video to a file, which appears whole or not at all.
   *
   * @param target full path; its folder exists
   */
  async save(videoFile: string, target: string): Promise<void> {
    const part = `${target}.${process.pid}.part`;
    try {
      const [download] = await Promise.all([
        this.page.waitForEvent('download'),
        this.call('download', videoFile),
      ]);
      await download.saveAs(part);
      await rename(part, target);
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
  }

  /** Calls `window.kinora`; its errors come out as text and become KinoraErrors again here. */
  async call<Name extends Exclude<keyof HeadlessApi, 'cancel'>>(
    name: Name,
    ...args: Parameters<HeadlessApi[Name]>
  ): Promise<Awaited<ReturnType<HeadlessApi[Name]>>> {
    const outcome = await this.page.evaluate(
      async ([method, input]) => {
        const api = window.kinora as unknown as Record<string, (...a: unknown[]) => unknown>;
        try {
          return { value: await api[method as string]?.(...(input as unknown[])) };
        } catch (thrown) {
          return { failure: thrown instanceof Error ? thrown.message : String(thrown) };
        }
      },
      [name, args] as const,
    );
    if ('failure' in outcome) throw toPageError(outcome.failure ?? '');
    return outcome.value as Awaited<ReturnType<HeadlessApi[Name]>>;
  }
}

/** An error of the page, which came out as text. */
export function toPageError(text: string): KinoraError {
  try {
    const record = JSON.parse(text) as Partial<ErrorRecord>;
    if (isErrorCode(record.code) && record.message && record.remedy) {
      return KinoraError.fromRecord(record as ErrorRecord);
    }
  } catch {
    // Not from our code: reported as it is.
  }
  return new KinoraError('INTERNAL', `Something went wrong inside Kinora: ${text}`);
}
