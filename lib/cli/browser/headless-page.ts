import { rename, rm } from 'node:fs/promises';
import type { BrowserContext, Page } from 'playwright';
import {
  type ErrorRecord,
  type GenerationResult,
  type HeadlessApi,
  type HeadlessEvent,
  type HeadlessRun,
  isErrorCode,
  KinoraError,
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
    browser: Pick<BrowserContext, 'newPage'>,
    origin: string,
    onProgress: (event: HeadlessEvent) => void = () => undefined,
  ): Promise<HeadlessPage> {
    const address = new URL('/headless', origin).href;
    return new HeadlessPage(
      await openPage(browser, address, (page) => page.exposeFunction('kinoraProgress', onProgress)),
    );
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

  /** Calls `window.kinora`, as {@link callPage} does. */
  async call<Name extends Exclude<keyof HeadlessApi, 'cancel'>>(
    name: Name,
    ...args: Parameters<HeadlessApi[Name]>
  ): Promise<Awaited<ReturnType<HeadlessApi[Name]>>> {
    const value = await callPage(this.page, 'kinora', name, args);
    return value as Awaited<ReturnType<HeadlessApi[Name]>>;
  }
}

/**
 * Opens a page and waits until it can be used.
 *
 * @param prepare called before the page is loaded, to expose functions to it
 */
export async function openPage(
  browser: Pick<BrowserContext, 'newPage'>,
  address: string,
  prepare: (page: Page) => Promise<unknown>,
): Promise<Page> {
  const page = await browser.newPage();
  await prepare(page);
  await page.goto(address);
  await page.locator('main[data-ready="true"]').waitFor({ state: 'attached' });
  return page;
}

/**
 * Calls a function that a page has for programs.
 *
 * @throws KinoraError the page's own, which comes out as text
 */
export async function callPage(
  page: Page,
  api: 'kinora' | 'kinoraServe',
  name: string,
  args: readonly unknown[],
): Promise<unknown> {
  const outcome = await page.evaluate(
    async ([of, method, input]) => {
      const functions = window[of] as unknown as Record<string, (...a: unknown[]) => unknown>;
      try {
        return { value: await functions[method]?.(...input) };
      } catch (thrown) {
        return { failure: thrown instanceof Error ? thrown.message : String(thrown) };
      }
    },
    [api, name, args] as const,
  );
  if ('failure' in outcome) throw toPageError(outcome.failure ?? '');
  return outcome.value;
}

/** An error of the page, which came out as text. */
function toPageError(text: string): KinoraError {
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
