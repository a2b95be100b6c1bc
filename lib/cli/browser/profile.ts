import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { BrowserContext } from 'playwright';
import { isAlive } from '../../../relay/access/control';
import { KinoraError } from '../../contract';
import { launchProfile, type Started } from './launch';

/**
 * Address of the app inside of a profile. The browser's storage belongs to an origin, port included, and the server
 * takes another port each time; so the browser resolves this name to the server. Names below `localhost` count as
 * secure: WebGPU and private files are there.
 */
export const profileOrigin = 'http://kinora.localhost';

/**
 * Starts a browser on the profile in `home`, which the caller has locked.
 *
 * @param serverOrigin where the app is served now
 * @param origin the app's address inside of the profile, to which what is stored belongs
 * @throws KinoraError `BROWSER_MISSING`
 */
export async function openProfile(
  home: string,
  serverOrigin: string,
  origin = profileOrigin,
): Promise<Started<BrowserContext>> {
  const { host } = new URL(serverOrigin);
  const { hostname } = new URL(profileOrigin);
  const started = await launchProfile(path.join(home, 'browser'), [
    `--host-resolver-rules=MAP ${hostname}:80 ${host}`,
    // Chromium tells pages that 10 GiB are free at most; a model may need more, and more is granted.
    '--disable-features=StaticStorageQuota',
  ]);
  await keepStorage(started.browser, origin);
  return started;
}

/** Lets the page have what a click and a bookmark would give: storage that is not evicted. */
async function keepStorage(context: BrowserContext, origin: string): Promise<void> {
  const [page] = context.pages();
  if (!page) return;
  const session = await context.newCDPSession(page);
  await session.send('Browser.setPermission', {
    permission: { name: 'persistent-storage' },
    setting: 'granted',
    origin,
  });
  await session.detach();
}

/**
 * Takes the profile for this process: two browsers would spoil its files.
 *
 * @param home folder of the profile; made where it is missing
 * @returns what gives it back
 * @throws KinoraError `BUSY` while a living process has it, `FILE_UNWRITABLE`
 */
export async function lockProfile(home: string): Promise<() => Promise<void>> {
  const file = path.join(home, 'lock');
  const take = () => writeFile(file, String(process.pid), { flag: 'wx' });
  try {
    await mkdir(home, { recursive: true });
    await take().catch(async (cause: NodeJS.ErrnoException) => {
      if (cause.code !== 'EEXIST') throw cause;
      const owner = Number(await readFile(file, 'utf8').catch(() => ''));
      const isOther = owner > 0 && owner !== process.pid;
      if (isOther && isAlive(owner)) throw inUse(home, owner, cause);
      // Its process was killed and could not give it back.
      await rm(file, { force: true });
      await take();
    });
  } catch (cause) {
    if (cause instanceof KinoraError) throw cause;
    const reason = (cause as Error).message;
    throw new KinoraError('FILE_UNWRITABLE', `${home} cannot be used: ${reason}.`, {
      cause,
      remedy: 'Set KINORA_HOME to a folder that can be written.',
    });
  }
  return () => rm(file, { force: true });
}

function inUse(home: string, owner: number, cause: unknown): KinoraError {
  return new KinoraError('BUSY', `The models in ${home} are in use by process ${owner}.`, {
    cause,
    remedy: 'Wait until it ends, or set KINORA_HOME to another folder.',
  });
}
