import { appPath } from '../../lib/contract';

/** Replaces an earlier notification of Kinora instead of adding one. */
const tag = 'kinora';

/** Whether this browser shows notifications. */
export function hasNotifications(): boolean {
  return typeof Notification !== 'undefined';
}

/**
 * Shows a notification of the system, unless the user looks at this page, or has not allowed it. A click on
 * it brings the page to the front.
 */
export async function notify(title: string, body: string): Promise<void> {
  if (!hasNotifications() || Notification.permission !== 'granted') return;
  if (document.visibilityState === 'visible' && document.hasFocus()) return;
  const options = { body, tag, icon: appPath('/app/icon-192.png') };
  try {
    const notification = new Notification(title, options);
    notification.onclick = () => {
      window.focus();
      notification.close();
    };
  } catch {
    // Chrome on Android shows those of a service worker only, which has the click then.
    const registration = await navigator.serviceWorker?.getRegistration();
    await registration?.showNotification(title, options);
  }
}
