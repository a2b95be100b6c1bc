import { useEffect, useSyncExternalStore } from 'react';
import { appPath, Observable } from '../../lib/contract';
import { askToActivate } from '../../lib/offline/messages';
import { t } from '../texts';
import type { InstallOffer } from './install-offer';
import { hasServer } from './server';

/** What the browser offers for the app as a whole. */
interface AppOffers {
  /** A version that is installed and waits; null while this one is the newest. */
  readonly waiting: ServiceWorker | null;
  /** Null where the browser does not offer it, or the app is installed. */
  readonly install: InstallOffer | null;
}

const offers = new Observable<AppOffers>({ waiting: null, install: null });

function set(change: Partial<AppOffers>): void {
  offers.set({ ...offers.getSnapshot(), ...change });
}

/** Shortest time between two questions whether there is a new version, in milliseconds. */
const checkIntervalMs = 3_600_000;
let started = false;

/**
 * Registers the service worker when the page has loaded and the browser is idle: the first visit must not
 * wait for it. Later calls do nothing.
 */
function start(): void {
  if (started || process.env.NODE_ENV !== 'production') return;
  started = true;
  const { kinoraInstallOffer: early } = window;
  if (early) set({ install: early });
  // The offer comes once. Its default is not prevented: browsers write that to the console.
  window.addEventListener('beforeinstallprompt', (event) => {
    set({ install: event as InstallOffer });
  });
  window.addEventListener('appinstalled', () => set({ install: null }));
  // A program that drives the page, such as `npm run worker`, needs the version of its server.
  if (navigator.webdriver || !navigator.serviceWorker) return;
  const register = () => whenIdle(() => void registerWorker().catch(() => {}));
  if (document.readyState === 'complete') register();
  else window.addEventListener('load', register, { once: true });
}

function whenIdle(work: () => void): void {
  if ('requestIdleCallback' in window) window.requestIdleCallback(work, { timeout: 10_000 });
  else setTimeout(work, 2000);
}

/** Rejects where the server cannot be reached: the next visit tries again. */
async function registerWorker(): Promise<void> {
  // Next's folder may serve a whole app only with a header, which a static host does not send.
  const registration = hasServer
    ? await navigator.serviceWorker.register(new URL('../../workers/sw.ts', import.meta.url), {
        scope: '/',
      })
    : await navigator.serviceWorker.register(appPath('/sw.js'));
  const look = () => {
    // Without a controller this is the first version, or a page that was loaded past the worker.
    const { controller } = navigator.serviceWorker;
    set({ waiting: controller ? registration.waiting : null });
  };
  look();
  registration.addEventListener('updatefound', () => {
    registration.installing?.addEventListener('statechange', look);
  });
  registration.installing?.addEventListener('statechange', look);
  let checkedAt = Date.now();
  document.addEventListener('visibilitychange', () => {
    if (document.hidden || Date.now() - checkedAt < checkIntervalMs) return;
    checkedAt = Date.now();
    // It fails without network.
    registration.update().catch(() => {});
  });
}

/**
 * Switches to the waiting version and loads the page again, unless something is at work.
 *
 * @returns why it cannot be now, as a sentence; null when it switches
 */
export async function switchVersion(waiting: ServiceWorker): Promise<string | null> {
  // Runs, downloads and serving hold locks, in each tab.
  const { held = [] } = await navigator.locks.query();
  if (held.some(({ name }) => name?.startsWith('kinora:'))) {
    return t('shared.updateBusy');
  }
  const { serviceWorker } = navigator;
  const reload = () => window.location.reload();
  serviceWorker.addEventListener('controllerchange', reload, { once: true });
  if ((await askToActivate(waiting)) === 'activated') return null;
  serviceWorker.removeEventListener('controllerchange', reload);
  return t('shared.updateOtherTabs');
}

/** What the browser offers; starts the service worker. */
export function useAppOffers(): AppOffers {
  useEffect(start, []);
  return useSyncExternalStore(offers.subscribe, offers.getSnapshot, offers.getServerSnapshot);
}
