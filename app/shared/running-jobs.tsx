'use client';

import { useEffect } from 'react';
import { t } from '../texts';
import { formatTime } from '../texts/format';
import { Link } from './link';
import { type RunningJob, showInTitle, useRunningJobs } from './running-job';

/** The jobs of this tab that another page than this one shows, each with a link to it. */
export function RunningJobs({ here }: { here: string | undefined }) {
  const jobs = useRunningJobs();
  useEffect(showInTitle, []);
  return jobs
    .filter(({ href }) => href !== here)
    .map((job) => (
      <Link
        key={job.href}
        href={job.href}
        className="running-job row gap-10 bordered rounded text-m numbers"
      >
        <progress aria-hidden value={job.percent ?? undefined} max={100} />
        <span>{jobText(job)}</span>
      </Link>
    ));
}

const titles = {
  '/': 'common.jobOfStudio',
  '/serve': 'common.jobOfServe',
  '/models': 'common.jobOfModels',
} as const;

/** What a job is, how far it is and how long it takes. */
export function jobText({ href, percent, secondsRemaining, state: jobState }: RunningJob): string {
  const share = percent === null ? null : `${percent} %`;
  const left =
    secondsRemaining === null ? null : t('common.jobLeft', { time: formatTime(secondsRemaining) });
  const standing = jobState === 'waiting' ? t('common.jobWaiting') : left;
  const parts = [share, standing].filter((part) => part !== null);
  const state = parts.length > 0 ? parts.join(' · ') : t('common.jobStarting');
  return t(titles[href], { state });
}
