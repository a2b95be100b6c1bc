import { useSyncExternalStore } from 'react';
import { Observable } from '../../lib/contract';

/** Those with jobs: the title shows the first one's. */
const pages = ['/', '/serve', '/models'] as const;

/** What every page shows of a job that runs in this tab. */
export interface RunningJob {
  /** The page that has more about it. */
  readonly href: (typeof pages)[number];
  /** 0 … 99; null before it has begun. */
  readonly percent: number | null;
  readonly secondsRemaining: number | null;
  /** `waiting` for the GPU. */
  readonly state: 'running' | 'waiting';
}

/*
 * Runner, serving store and library write into this; the header reads it. So no page loads them where nothing runs.
 */
const running = new Observable<readonly RunningJob[]>([]);

/** Shows a job on every page and in the title; null when it has ended. */
export function showJob(href: RunningJob['href'], job: Omit<RunningJob, 'href'> | null): void {
  const jobs = running.getSnapshot();
  if (!job && !jobs.some((each) => each.href === href)) return;
  const others = jobs.filter((each) => each.href !== href);
  const all = [...others, ...(job ? [{ href, ...job }] : [])];
  running.set(all.sort((a, b) => pages.indexOf(a.href) - pages.indexOf(b.href)));
  showInTitle();
}

/** Puts the progress before the title of whatever page is open, and into its icon. */
export function showInTitle(): void {
  const own = document.title.replace(/^(\d+%|…) · /, '');
  const [job] = running.getSnapshot();
  const percent = job?.percent === null ? '…' : `${job?.percent}%`;
  const title = job ? `${percent} · ${own}` : own;
  if (document.title !== title) document.title = title;
  showInIcon(job ? (job.percent ?? 0) : null);
}

/** The jobs of this tab: at most one of each page. */
export function useRunningJobs(): readonly RunningJob[] {
  return useSyncExternalStore(running.subscribe, running.getSnapshot, running.getServerSnapshot);
}

/** The page's own icons while another one stands in for them. */
const own = new WeakMap<HTMLLinkElement, string>();

/** Shows progress as the icon of the tab. @param percent 0 … 100; null brings the page's own icon back */
function showInIcon(percent: number | null): void {
  for (const link of document.querySelectorAll<HTMLLinkElement>('link[rel="icon"]')) {
    const href = own.get(link) ?? link.getAttribute('href') ?? '';
    own.set(link, href);
    const shown = percent === null ? href : drawn(percent);
    // The browser loads an icon anew whenever it is set.
    if (link.getAttribute('href') !== shown) link.setAttribute('href', shown);
  }
}

/** A ring that is filled clockwise, in the colours of the logo. */
function drawn(percent: number): string {
  const around = 2 * Math.PI * 12;
  const ring = (stroke: string, length: number) => {
    const line = { fill: 'none', stroke, 'stroke-width': 6 };
    const dashes = { 'stroke-dasharray': `${length} ${around}`, transform: 'rotate(-90 16 16)' };
    return element('circle', { cx: 16, cy: 16, r: 12, ...line, ...dashes });
  };
  const rings = ring('#d8b8a8', around) + ring('#b8431c', (around * percent) / 100);
  const svg = element('svg', { xmlns: 'http://www.w3.org/2000/svg', viewBox: '0 0 32 32' }, rings);
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

function element(
  name: string,
  attributes: Readonly<Record<string, string | number>>,
  content = '',
): string {
  const list = Object.entries(attributes).map(([key, value]) => `${key}="${value}"`);
  return `<${name} ${list.join(' ')}>${content}</${name}>`;
}
