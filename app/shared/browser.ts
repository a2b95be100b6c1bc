import { useEffect, useEffectEvent, useState, useSyncExternalStore } from 'react';

/**
 * The answer to a question, asked again when what it is about changes; undefined until it is there, and where the
 * question is refused.
 */
export function useAnswer<T>(ask: () => Promise<T>, about: readonly unknown[]): T | undefined {
  const [given, setGiven] = useState<{ about: readonly unknown[]; answer: T }>();
  const effect = () => {
    let current = true;
    ask().then(
      (answer) => current && setGiven({ about, answer }),
      () => {},
    );
    return () => {
      current = false;
    };
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: what it is about is what it depends on
  useEffect(effect, about);
  return given?.about.every((one, index) => one === about[index]) ? given.answer : undefined;
}

/** Listens to an event of the window as long as the component is there. @param capture before the elements of the page */
export function useWindowEvent<Type extends keyof WindowEventMap>(
  type: Type,
  handle: (event: WindowEventMap[Type]) => void,
  capture = false,
): void {
  const onEvent = useEffectEvent(handle);
  useEffect(() => {
    const listener = (event: WindowEventMap[Type]) => onEvent(event);
    window.addEventListener(type, listener, capture);
    return () => window.removeEventListener(type, listener, capture);
  }, [type, capture]);
}

/** The time in milliseconds since the epoch, updated every second. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/**
 * Unfolds the section of an element and hands it over, once it is rendered: a busy page takes some frames.
 *
 * @param frames after which it is given up
 */
export function onceRendered(
  find: () => HTMLElement | null | undefined,
  show: (element: HTMLElement) => void,
  frames = 100,
): void {
  const element = find();
  if (!element) {
    if (frames > 0) requestAnimationFrame(() => onceRendered(find, show, frames - 1));
    return;
  }
  const section = element.closest('details');
  if (section) section.open = true;
  show(element);
}

/** How long an element may still load an object URL that is not needed any more, in milliseconds. */
const revokeAfterMs = 10_000;

/** An object URL of a blob, revoked after the blob changes or the component unmounts; null at first. */
export function useObjectUrl(blob: Blob | null | undefined): string | null {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    if (!blob) return;
    const created = URL.createObjectURL(blob);
    setUrl(created);
    return () => {
      setTimeout(() => URL.revokeObjectURL(created), revokeAfterMs);
      setUrl(null);
    };
  }, [blob]);
  return url;
}

/** A media query, and a hook that tells whether it applies; false while the page is rendered by the build. */
function mediaHook(text: string): () => boolean {
  const subscribe = (listener: () => void) => {
    const query = window.matchMedia(text);
    query.addEventListener('change', listener);
    return () => query.removeEventListener('change', listener);
  };
  const matches = () => window.matchMedia(text).matches;
  return () => useSyncExternalStore(subscribe, matches, () => false);
}

/** Whether the user prefers reduced motion. */
export const useReducedMotion = mediaHook('(prefers-reduced-motion: reduce)');

/** Whether the studio has the form at the side, as in its style sheet. */
export const useFormAtSide = mediaHook('(min-width: 861px)');

/**
 * Keeps the screen on until `signal` aborts, because a sleeping machine does not compute. The browser
 * releases the wake lock of a hidden page, so it is requested again when the page becomes visible.
 */
export function keepAwake(signal: AbortSignal): void {
  if (!('wakeLock' in navigator)) return;
  let lock: WakeLockSentinel | null = null;
  const request = async () => {
    if (document.visibilityState !== 'visible' || signal.aborted) return;
    try {
      lock = await navigator.wakeLock.request('screen');
      if (signal.aborted) await lock.release();
    } catch {
      // The browser refuses it, for example with a low battery; the run continues without it.
    }
  };
  void request();
  document.addEventListener('visibilitychange', request, { signal });
  signal.addEventListener('abort', () => void lock?.release());
}

/** Makes the browser ask before it closes the page, until `signal` aborts. */
export function warnOnLeave(signal: AbortSignal): void {
  window.addEventListener('beforeunload', (event) => event.preventDefault(), { signal });
}

/** For `onToggle` of a `details`: what it opens is in sight, and not below the window. */
export function showOpened({ currentTarget }: { currentTarget: HTMLDetailsElement }): void {
  if (currentTarget.open) currentTarget.scrollIntoView({ block: 'nearest' });
}

/** Saves a file to the user's downloads. */
export function downloadFile(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser reads the URL after this task. It needs no memory of its own, so a minute does no harm.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

const subscribeToNothing = () => () => {};

/** Whether the page takes input: false on the server, and until React has taken over what it sent. */
export function useHydrated(): boolean {
  return useSyncExternalStore(
    subscribeToNothing,
    () => true,
    () => false,
  );
}

/**
 * Puts a text in place of that of a text field, as if it had been typed: the browser's own Undo takes it back. The
 * focus stays where it is.
 *
 * @param id of the field
 */
export function typeInto(id: string, text: string): void {
  const field = document.getElementById(id);
  if (!(field instanceof HTMLTextAreaElement)) return;
  const focused = document.activeElement;
  field.focus({ preventScroll: true });
  field.select();
  // The only way into the history of a field; no browser is without it.
  document.execCommand(text === '' ? 'delete' : 'insertText', false, text);
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
}
