import { z } from 'zod';
import { backends } from '../../lib/contract/prediction';

const key = 'kinora:serving';

const schema = z.object({
  /** Null unless the person asked to remember it. */
  token: z.string().nullable(),
  name: z.string(),
  model: z.string(),
  backend: z.enum(backends),
  /** Whether it was connected when the page was left: it then connects again by itself. */
  connected: z.boolean(),
});

/** What the Serve page keeps in this browser. */
export type Remembered = z.output<typeof schema>;

/** What was kept; null where there is nothing, or nothing that can be read. */
export function recall(): Remembered | null {
  try {
    return schema.safeParse(JSON.parse(localStorage.getItem(key) ?? 'null')).data ?? null;
  } catch {
    return null;
  }
}

/** Keeps it; a browser that refuses forgets it. */
export function remember(values: Remembered): void {
  try {
    localStorage.setItem(key, JSON.stringify(values));
  } catch {
    // Private windows of some browsers keep nothing.
  }
}

/** "Chrome on Linux", as well as the browser tells. */
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
  return `${find(browsers) ?? 'A browser'} on ${find(systems) ?? 'some machine'}`;
}
