/** The service worker's answer to a page that wants the waiting version. */
export type ActivateAnswer = 'activated' | 'other-pages';

/** Asks the service worker of a waiting version to take over. */
export function askToActivate(waiting: ServiceWorker): Promise<ActivateAnswer> {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = ({ data }) => resolve(data);
    waiting.postMessage('activate', [port2]);
  });
}
