import type { BrowserContext, Page } from 'playwright';
import { KinoraError } from '../../contract';
import type { ServeApi, ServeConnect, ServeReport } from '../../worker/api';
import { toPageError } from './headless-page';

/** The page `/serve`, driven from Node. */
export class ServingPage {
  private constructor(
    readonly page: Page,
    /** Rejects when the page dies; never resolves. */
    readonly crashed: Promise<never>,
  ) {}

  /**
   * Opens the page and waits until it can be used.
   *
   * @param onEvent sees what happens from now on
   */
  static async open(
    context: Pick<BrowserContext, 'newPage'>,
    origin: string,
    onEvent: (event: ServeReport) => void,
  ): Promise<ServingPage> {
    const page = await context.newPage();
    const crashed = new Promise<never>((_, reject) => {
      const die = () => reject(new KinoraError('INTERNAL', 'The page has crashed.'));
      page.on('crash', die);
      page.on('close', die);
    });
    // Reported where it is awaited.
    crashed.catch(() => {});
    await page.exposeFunction('kinoraServing', onEvent);
    await page.goto(new URL('/serve', origin).href);
    await page.locator('main[data-ready="true"]').waitFor({ state: 'attached' });
    return new ServingPage(page, crashed);
  }

  /** @throws KinoraError what the page cannot connect with */
  async connect(options: ServeConnect): Promise<void> {
    const failure = await this.page.evaluate(async (input) => {
      try {
        await window.kinoraServe?.connect(input);
        return null;
      } catch (thrown) {
        return thrown instanceof Error ? thrown.message : String(thrown);
      }
    }, options);
    if (failure !== null) throw toPageError(failure);
  }

  /** Hands the current job back; a `disconnected` event tells when it has. */
  disconnect(): Promise<void> {
    return this.#tell('disconnect');
  }

  pause(): Promise<void> {
    return this.#tell('pause');
  }

  resume(): Promise<void> {
    return this.#tell('resume');
  }

  #tell(name: keyof Pick<ServeApi, 'disconnect' | 'pause' | 'resume'>): Promise<void> {
    return this.page.evaluate((call) => window.kinoraServe?.[call](), name);
  }
}
