import { useSyncExternalStore } from 'react';
import { Observable } from '../../lib/contract';
import { showInIcon } from './progress-icon';

/** Those with jobs: the title shows the first one's. */
const pages = ['/', '/serve', '/models'] as const;

/** What every page shows of a job that runs in this tab. */
export interface RunningJob {
  /** The page that has more about it. */
  readonly href: (typeof pages)[number];
  /** 0 … 99; null before it has begun. */
  readonly percent: number | null;
  readonly secondsRemaining: number | null;
  /** `waiting` for the GPU, `paused` until the user goes on with it. */
  readonly state: 'running' | 'waiting' | 'paused';
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
  const own = document.title.replace(/^(⏸ )?(\d+%|…) · /, '');
  const [job] = running.getSnapshot();
  const percent = job?.percent === null ? '…' : `${job?.percent}%`;
  const title = job ? `${job.state === 'paused' ? '⏸ ' : ''}${percent} · ${own}` : own;
  if (document.title !== title) document.title = title;
  showInIcon(job ? (job.percent ?? 0) : null);
}

/** The jobs of this tab: at most one of each page. */
export function useRunningJobs(): readonly RunningJob[] {
  return useSyncExternalStore(running.subscribe, running.getSnapshot, running.getServerSnapshot);
}
