/** The event with which browsers offer to install the app; not in the DOM's types. */
export interface InstallOffer extends Event {
  prompt(): Promise<{ outcome: 'accepted' | 'dismissed' }>;
}

declare global {
  interface Window {
    /** An offer that came before the page's scripts had run. */
    kinoraInstallOffer?: InstallOffer;
  }
}

/** A script for the page's head: browsers make their offer once, and do not wait for the page's own scripts. */
export const installScript = `addEventListener('beforeinstallprompt', (event) => {
  window.kinoraInstallOffer = event;
});`;
