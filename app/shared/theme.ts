import { useSyncExternalStore } from 'react';
import { StoredValue } from './stored-value';
import { themeKey } from './theme-script';

/** The colours of all pages: the system's, or always the same. */
export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

const stored = new StoredValue<Theme>(themeKey, 'system', (json) =>
  themes.find((theme) => theme === json),
);

/** Changes the colours of all tabs: the script in the page's head applies them. */
export const setTheme = stored.set;

/** The theme that the user has chosen; `system` during server rendering. */
export function useTheme(): Theme {
  return useSyncExternalStore(stored.subscribe, stored.getSnapshot, stored.getServerSnapshot);
}
