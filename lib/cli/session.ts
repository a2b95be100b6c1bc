import {
  entriesOf,
  type HeadlessEvent,
  KinoraError,
  type LibraryEntry,
  type LibrarySnapshot,
  type ModelEntry,
} from '../contract';
import { HeadlessPage } from './browser/headless-page';
import { launchBrowser } from './browser/launch';
import { servePages } from './browser/page-bundle';
import { lockProfile, openProfile, profileOrigin } from './browser/profile';
import type { Command } from './command';
import { noteLibrary } from './paths';

/** The app's bare page in a running browser. */
export interface Session {
  readonly page: HeadlessPage;
  /** Whether WebGPU is computed on the CPU. */
  readonly software: boolean;
}

/** A session whose storage lasts: models can be kept in it. */
export interface LibrarySession extends Session {
  /** Folder in which they are kept. */
  readonly home: string;
  snapshot(): Promise<LibrarySnapshot>;
  /** A video model. @throws KinoraError `MODEL_UNKNOWN` naming the ids there are */
  model(id: string): Promise<ModelEntry>;
  /** A video model or a language model. @throws KinoraError `MODEL_UNKNOWN` naming the ids there are */
  entry(id: string): Promise<LibraryEntry>;
  /** Sees the states of models from now on, one listener at a time; null for none. */
  watch(listener: ((snapshot: LibrarySnapshot) => void) | null): void;
}

/** Serves the bare pages, in a browser that forgets everything at the end. */
export async function openSession(
  command: Command,
  onProgress: (event: HeadlessEvent) => void,
): Promise<Session> {
  const launch = async () => {
    const started = await launchBrowser();
    command.afterwards(() => started.browser.close());
    return started;
  };
  // Each takes seconds, and neither needs the other. Both are waited for, so that both are ended.
  const [served, launched] = await Promise.allSettled([serve(command), launch()]);
  if (served.status === 'rejected') throw served.reason;
  if (launched.status === 'rejected') throw launched.reason;
  const origin = served.value;
  const { browser, software } = launched.value;
  command.signal.throwIfAborted();
  return { page: await HeadlessPage.open(browser, origin, onProgress), software };
}

/**
 * The same in the browser profile of `home`.
 *
 * @param hub base address of the hub; from then on this one is asked
 * @throws KinoraError `BUSY` while another process uses the profile, `FILE_UNWRITABLE`,
 *   `ADDRESS_INVALID`
 */
export async function openLibrarySession(
  command: Command,
  home: string,
  hub: string | undefined,
  onProgress: (event: HeadlessEvent) => void = () => undefined,
): Promise<LibrarySession> {
  command.afterwards(await lockProfile(home));
  const origin = await serve(command);
  const { browser, software } = await openProfile(home, origin);
  command.afterwards(() => browser.close());
  command.signal.throwIfAborted();
  const page = await HeadlessPage.open(browser, profileOrigin, onProgress);
  return librarySession(page, software, home, hub);
}

/** The session of a page that is open. @param hub as in {@link openLibrarySession} */
export async function librarySession(
  page: HeadlessPage,
  software: boolean,
  home: string,
  hub: string | undefined,
): Promise<LibrarySession> {
  let listener: ((snapshot: LibrarySnapshot) => void) | null = null;
  await page.page.exposeFunction('kinoraLibrary', (snapshot: LibrarySnapshot) =>
    listener?.(snapshot),
  );
  await page.call('watchLibrary');
  await page.call('clearHistory');
  if (hub !== undefined) await page.call('setHub', hub);
  const token = process.env.HF_TOKEN;
  // A worker's page may come from another server, whose code must not see the token.
  const isOwn = new URL(page.page.url()).origin === profileOrigin;
  if (token && isOwn) await page.call('setHubToken', token.trim());
  const snapshot = async () => {
    const now = await page.call('snapshot');
    await noteLibrary(home, now);
    return now;
  };
  return {
    page,
    software,
    home,
    snapshot,
    model: async (id) => find((await snapshot()).models, id),
    entry: async (id) => find(entriesOf(await snapshot()), id),
    watch(next) {
      listener = next;
    },
  };
}

function find<E extends LibraryEntry>(entries: readonly E[], id: string): E {
  const entry = entries.find(({ manifest }) => manifest.id === id);
  if (entry) return entry;
  const shown = entries.filter(({ hidden }) => !hidden);
  const ids = shown.map(({ manifest }) => manifest.id).join(', ');
  throw new KinoraError('MODEL_UNKNOWN', `There is no model with the id ${id}.`, {
    remedy: `Use one of: ${ids}.`,
  });
}

async function serve(command: Command): Promise<string> {
  const pages = await servePages();
  command.afterwards(pages.close);
  command.signal.throwIfAborted();
  return pages.base;
}
