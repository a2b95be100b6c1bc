import type { ActivateAnswer } from './messages';
import { keepSharedFiles, lostShare, sharePath } from './shared-files';
import { buildPlaceholder, isServerPath, pathInside } from './version';
import { VersionCache } from './version-cache';

/**
 * The service worker: the app without network. It answers with the files of its own build, and leaves the
 * API, uploads, downloads of models and other hosts to the network. A new build waits until no page of
 * the old one is open, or until a page asks for it and is the only one (lib/offline/README.md).
 */
export function startServiceWorker(): void {
  const worker = self as unknown as ServiceWorkerGlobalScope;
  const { scope } = worker.registration;
  const version = new VersionCache(buildPlaceholder, scope);

  worker.addEventListener('install', (event) => event.waitUntil(version.install()));

  worker.addEventListener('activate', (event) => {
    event.waitUntil(version.deleteOthers().then(() => worker.clients.claim()));
  });

  worker.addEventListener('fetch', (event) => {
    const { request } = event;
    const isVisit = request.mode === 'navigate';
    const path = pathInside(request.url, scope);
    if (path === null) return;
    if (request.method === 'POST' && path === sharePath) {
      event.respondWith(takeShared(request, scope));
    } else if (request.method === 'GET' && isVisit && path.startsWith('//')) {
      // The page of such an address cannot write it into its history: `//models` would be another host.
      const { search } = new URL(request.url);
      event.respondWith(Response.redirect(scope + path.replace(/^\/+/, '') + search));
    } else if (request.method === 'GET' && (isVisit || !isServerPath(path))) {
      event.respondWith(version.answer(event));
    }
  });

  /** A page asks for the switch to this version. With another page open that one would lose its files. */
  worker.addEventListener('message', (event) => {
    const answer = async (): Promise<ActivateAnswer> => {
      const pages = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true });
      if (pages.length > 1) return 'other-pages';
      await worker.skipWaiting();
      return 'activated';
    };
    event.waitUntil(answer().then((text) => event.ports[0]?.postMessage(text)));
  });

  /** Brings the app to the front where the browser shows notifications by the service worker. */
  worker.addEventListener('notificationclick', (event) => {
    event.notification.close();
    const show = async () => {
      const [page] = await worker.clients.matchAll({ type: 'window' });
      await (page ? page.focus() : worker.clients.openWindow(scope));
    };
    event.waitUntil(show());
  });
}

async function takeShared(request: Request, scope: string): Promise<Response> {
  const kept = await request
    .formData()
    .then(keepSharedFiles)
    .then(
      () => true,
      () => false,
    );
  return Response.redirect(kept ? scope : scope + lostShare, 303);
}
