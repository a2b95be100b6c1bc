import { formatSeconds } from '../../lib/contract/format';
import type { ServedJob } from '../../lib/worker/api';
import { outcomeNames } from './wording';

/** The jobs that ended here since the page was opened. */
export function ServedList(props: { served: readonly ServedJob[]; completed: number }) {
  const { served, completed } = props;
  if (served.length === 0) return null;
  return (
    <section className="panel served" aria-labelledby="served-title">
      <h2 id="served-title">
        {completed === 1 ? '1 job done' : `${completed} jobs done`} since this page was opened
      </h2>
      <ul>
        {served.map((job) => (
          <li key={`${job.id} ${job.attempt} ${job.endedAt}`} data-outcome={job.outcome}>
            <span className="served-id">{job.id.slice(0, 8)}</span>
            <span className="served-outcome">{outcomeNames[job.outcome]}</span>
            <span>{formatSeconds(job.seconds)}</span>
            <time dateTime={new Date(job.endedAt).toISOString()}>
              {new Date(job.endedAt).toLocaleTimeString()}
            </time>
            {job.error && (
              <span className="served-error">
                {job.error.message} {job.error.remedy}
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
