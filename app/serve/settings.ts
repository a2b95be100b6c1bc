import { z } from 'zod';
import { readText, writeText } from '../shared/stored-text';
import { t } from '../texts';
import '../texts/en/serve';

const key = 'kinora:serving';

const schema = z.object({
  /** Null unless the user wants it to be stored. */
  token: z.string().nullable(),
  name: z.string(),
  model: z.string(),
  /** Whether the tab was connected when the page was closed; it then connects again. */
  connected: z.boolean(),
});

/** The settings that the Serve page stores in this browser. */
export type ServeSettings = z.output<typeof schema>;

/** The stored settings; null if there are none, or if they are not valid. */
export function loadSettings(): ServeSettings | null {
  try {
    return schema.safeParse(JSON.parse(readText(key) ?? 'null')).data ?? null;
  } catch {
    // It holds something else.
    return null;
  }
}

/** Stores the settings, if the browser allows it. */
export function saveSettings(values: ServeSettings): void {
  writeText(key, JSON.stringify(values));
}

/** A name such as "Chrome on Linux" from the user agent. */
export function browserName(agent: string): string {
  const browsers: [string, RegExp][] = [
    ['Edge', /Edg\//],
    ['Firefox', /Firefox\//],
    ['Chrome', /Chrome\//],
    ['Safari', /Safari\//],
  ];
  const systems: [string, RegExp][] = [
    ['Android', /Android/],
    ['iOS', /iPhone|iPad/],
    ['Windows', /Windows/],
    ['macOS', /Mac OS X/],
    ['ChromeOS', /CrOS/],
    ['Linux', /Linux/],
  ];
  const find = (names: [string, RegExp][]) => names.find(([, pattern]) => pattern.test(agent))?.[0];
  return t('serve.browserOn', {
    browser: find(browsers) ?? t('serve.aBrowser'),
    system: find(systems) ?? t('serve.aMachine'),
  });
}
